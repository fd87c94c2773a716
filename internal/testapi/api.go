// Package testapi is an API server for tests of reconcilers: controller-runtime's fake, with
// a clock that the test sets, and calls that it can have fail. It must not know what is
// reconciled, and no product code imports it.
package testapi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
)

// ErrDown is what a call that fails returns.
var ErrDown = errors.New("the API server does not answer")

// Server is an API server of one test.
type Server struct {
	*testing.T
	client.WithWatch
	// Clock is the time for Now and of what is made.
	Clock time.Time
	// Calls is how many there were, and FailAt is the one that fails; 0 for none. If Late, it
	// has done before what it was asked.
	Calls, FailAt int
	Late          bool
	// Blind: lists are empty.
	Blind bool
	// Refuse is the answer to whoever makes an object; nil for none.
	Refuse error
	// Writes are what was changed, as "create name", "delete name", "patch name" or "status".
	Writes []string
	// Told are the events that Recorder recorded.
	Told chan string
}

// New is a Server at a time, with these objects.
func New(t *testing.T, clock time.Time, objs ...client.Object) *Server {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	s := &Server{T: t, Clock: clock, Told: make(chan string, 1000)}
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).
		WithStatusSubresource(&v1alpha1.Cluster{}, &v1alpha1.Backup{},
			&v1alpha1.ScheduledBackup{}).
		WithIndex(&corev1.Event{}, "involvedObject.uid", eventOf).WithInterceptorFuncs(s.funcs()).Build()
	return s
}

// eventOf is by which object events are found, as the API server does it.
func eventOf(obj client.Object) []string {
	return []string{string(obj.(*corev1.Event).InvolvedObject.UID)}
}

// do counts a call, and carries it out; write says what it changes, "" if it only reads.
func (s *Server) do(write string, call func() error) error {
	s.Calls++
	if s.Calls != s.FailAt {
		if write != "" {
			s.Writes = append(s.Writes, write)
		}
		return call()
	}
	if s.Late {
		_ = call()
	}
	return ErrDown
}

func (s *Server) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			o ...client.GetOption) error {
			return s.do("", func() error { return c.Get(ctx, key, obj, o...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			return s.do("", func() error {
				if s.Blind {
					return nil
				}
				return c.List(ctx, list, o...)
			})
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			return s.do("create "+obj.GetName(), func() error { return s.create(ctx, c, obj, o...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			return s.do("delete "+obj.GetName(), func() error { return c.Delete(ctx, obj, o...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch,
			o ...client.PatchOption) error {
			return s.do("patch "+obj.GetName(), func() error { return c.Patch(ctx, obj, p, o...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch,
			o ...client.SubResourcePatchOption) error {
			return s.do(sub, func() error { return c.SubResource(sub).Patch(ctx, obj, p, o...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object,
			o ...client.SubResourceUpdateOption) error {
			return s.do(sub, func() error { return c.SubResource(sub).Update(ctx, obj, o...) })
		},
	}
}

// create fills in what an API server does.
func (s *Server) create(ctx context.Context, c client.Client, obj client.Object, o ...client.CreateOption) error {
	if s.Refuse != nil {
		return s.Refuse
	}
	obj.SetCreationTimestamp(metav1.NewTime(s.Clock))
	obj.SetUID(types.UID(fmt.Sprintf("made-%d", s.Calls)))
	return c.Create(ctx, obj, o...)
}

// Now is the time by the Clock.
func (s *Server) Now() time.Time { return s.Clock }

// Recorder records events for Told.
func (s *Server) Recorder() events.EventRecorder { return &events.FakeRecorder{Events: s.Told} }

// Events are those that were told since the last time.
func (s *Server) Events() (all []string) {
	for len(s.Told) > 0 {
		all = append(all, <-s.Told)
	}
	return all
}

// Must ends the test if there is an error.
func (s *Server) Must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// Aside asks what nobody who is tested asks: it never fails and is not counted.
func (s *Server) Aside(call func() error) {
	s.Helper()
	calls, failAt, blind, refuse, writes := s.Calls, s.FailAt, s.Blind, s.Refuse, s.Writes
	s.FailAt, s.Blind, s.Refuse = 0, false, nil
	s.Must(call())
	s.Calls, s.FailAt, s.Blind, s.Refuse, s.Writes = calls, failAt, blind, refuse, writes
}
