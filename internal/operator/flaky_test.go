package operator

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
)

var errFlaky = errors.New("the API server does not answer")

// outcome is what becomes of a call that fails.
type outcome string

const (
	// // callLost is a call that the API server has not got.
	callLost outcome = "is lost"
	// callUnanswered is one that it has carried out, and nobody hears of that.
	callUnanswered outcome = "is carried out and not answered"
	// callLast is one that it has carried out, and the operator has died after it.
	callLast outcome = "is carried out, and the operator dies"
)

// fault is which of the calls fails, the first being 1, and how; none does if at is 0.
type fault struct {
	at  int
	how outcome
}

// flaky is an API server that fails one of the operator's calls. It gives each object a UID, and deletes and applies
// only what was meant, all of which the fake one below it does not.
type flaky struct {
	client.WithWatch
	// raw is the same server for everybody but the operator: its calls are not counted, and none fails.
	raw client.WithWatch

	mu sync.Mutex
	fault
	// writes tells of each call whether it changes something.
	writes []bool
	// died: the operator has, so that no call of it comes through.
	died bool
}

func newFlaky(t *testing.T, objs ...client.Object) *flaky {
	t.Helper()
	f := &flaky{}
	f.raw = newFake(t).WithReturnManagedFields().WithStatusSubresource(&v1alpha1.Cluster{}).WithObjects(objs...).Build()
	f.WithWatch = interceptor.NewClient(f.raw, f.funcs())
	return f
}

// arm begins to count calls, one of which is to fail.
func (f *flaky) arm(with fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.writes, f.died = with, nil, false
}

// hasDied reports whether the operator has, once.
func (f *flaky) hasDied() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	died := f.died
	f.died = false
	return died
}

// hasFailed reports whether the call that is to fail has.
func (f *flaky) hasFailed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at > 0 && len(f.writes) >= f.at
}

// next is what becomes of the next call; "" is one that is answered.
func (f *flaky) next(isWrite bool) outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.died {
		return callLost
	}
	f.writes = append(f.writes, isWrite)
	if len(f.writes) != f.at {
		return ""
	}
	f.died = f.how == callLast
	return f.how
}

func (f *flaky) call(isWrite bool, do func() error) error {
	how := f.next(isWrite)
	if how == "" {
		return do()
	}
	if how != callLost {
		_ = do()
	}
	return errFlaky
}

func (f *flaky) read(do func() error) error  { return f.call(false, do) }
func (f *flaky) write(do func() error) error { return f.call(true, do) }

func (f *flaky) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			o ...client.GetOption) error {
			return f.read(func() error { return c.Get(ctx, key, obj, o...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			return f.read(func() error { return c.List(ctx, list, o...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			obj.SetUID(uuid.NewUUID())
			return f.write(func() error { return c.Create(ctx, obj, o...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			return f.write(func() error {
				if err := isMeant(ctx, c, obj, o); err != nil {
					return err
				}
				return c.Delete(ctx, obj, o...)
			})
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.UpdateOption) error {
			return f.write(func() error { return c.Update(ctx, obj, o...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch,
			o ...client.PatchOption) error {
			return f.write(func() error { return c.Patch(ctx, obj, p, o...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration,
			o ...client.ApplyOption) error {
			return f.write(func() error { return applyIdentified(ctx, c, obj, o) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object,
			o ...client.SubResourceUpdateOption) error {
			return f.write(func() error { return c.SubResource(sub).Update(ctx, obj, o...) })
		},
	}
}

// applyIdentified applies an object, which gets a UID if that makes it.
func applyIdentified(ctx context.Context, c client.Client, obj runtime.ApplyConfiguration,
	o []client.ApplyOption) error {
	if err := isApplicable(ctx, c, obj); err != nil {
		return err
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	var applied unstructured.Unstructured
	if err := applied.UnmarshalJSON(text); err != nil {
		return err
	}
	if err := c.Apply(ctx, obj, o...); err != nil {
		return err
	}
	err = c.Get(ctx, client.ObjectKeyFromObject(&applied), &applied)
	if err != nil || applied.GetUID() != "" {
		return err
	}
	applied.SetUID(uuid.NewUUID())
	return c.Update(ctx, &applied, client.FieldOwner("kube-apiserver"))
}
