package operator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// hooked is an API server whose webhook for Pods answers when it is told to.
type hooked struct {
	client.Client
	asked  atomic.Int32
	answer chan error
}

func newHooked(t *testing.T, objs ...client.Object) *hooked {
	t.Helper()
	h := &hooked{answer: make(chan error)}
	h.Client = newFake(t).WithReturnManagedFields().WithStatusSubresource(&v1alpha1.Cluster{}).WithObjects(objs...).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object,
			o ...client.CreateOption) error {
			if _, is := obj.(*corev1.Pod); !is {
				return c.Create(ctx, obj, o...)
			}
			h.asked.Add(1)
			select {
			case err := <-h.answer:
				if err != nil {
					return err
				}
				return c.Create(ctx, obj, o...)
			case <-ctx.Done():
				return ctx.Err()
			}
		}}).Build()
	return h
}

// unheard is a Pod to whose manager no stream is opened: what it says is put into its mouth.
func unheard(instance, uid, node string) *corev1.Pod {
	p := aPod(instance, uid, node)
	p.Status.PodIP = ""
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

// bound is the claim of an instance, which has its volume.
func bound(t *testing.T, instance string) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim, err := resources.VolumeClaim(aCluster(), instance, 1)
	must(t, err)
	claim.Status.Phase = corev1.ClaimBound
	return claim
}

// The Pod of c-2 is being made, which takes long, when the primary fails.
func TestASlowWebhookHoldsUpNoFailover(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	h := newHooked(t, node, aCluster(), unheard("c-1", "first", "n1"), bound(t, "c-1"), bound(t, "c-2"))
	r := operatorOf(t, h)
	look := func(state core.State, epoch int64) *v1alpha1.Cluster {
		t.Helper()
		r.says("c-1", core.Report{Boot: "a", Instance: "c-1", PodUID: "first", State: state, Data: core.DataPopulated,
			WritableEpoch: epoch, SeenEpoch: 1, Server: &core.Server{UUID: "u1"}})
		_, err := r.Reconcile(quietly(t), ctrl.Request{NamespacedName: clusterKey})
		must(t, err)
		var now v1alpha1.Cluster
		must(t, h.Get(t.Context(), clusterKey, &now))
		return &now
	}
	if now := look(core.Running, 1); h.asked.Load() != 1 || now.Status.PrimaryFailingSince != nil {
		t.Fatalf("%d Pods are asked for, and the primary is %s", h.asked.Load(), now.Status.Diagnosis)
	}
	for range 3 {
		if now := look(core.Stopped, 0); now.Status.PrimaryFailingSince == nil {
			t.Error("while a Pod is being made nobody notices that the primary has failed")
		}
	}
	if n := h.asked.Load(); n != 1 {
		t.Errorf("the Pod is asked for %d times while it is being made", n)
	}
	h.answer <- nil
	pod := client.ObjectKey{Namespace: "ns", Name: "c-2"}
	for h.Get(t.Context(), pod, &corev1.Pod{}) != nil && t.Context().Err() == nil {
		look(core.Running, 1)
	}
}

// slow is an actor's request that is answered when the channel is.
func slow(answer chan error) func(context.Context) error {
	return func(context.Context) error { return <-answer }
}

func TestALateAnswerIsToldToWhoeverAsksNext(t *testing.T) {
	r, answers, told := newRequests(), make(chan error), make(chan struct{}, 1)
	over := func() { told <- struct{}{} }
	never := func(context.Context) error { t.Error("it is asked for twice"); return nil }
	refused := errors.New("refused")
	for _, late := range []error{refused, nil} {
		var waits *underWayError
		if err := r.make(t.Context(), "pod", slow(answers), over); !errors.As(err, &waits) {
			t.Fatal(err)
		}
		if err := r.make(t.Context(), "pod", never, over); !errors.As(err, &waits) || late == nil &&
			!errors.Is(waits.former, refused) {
			t.Errorf("while it is under way: %v, which failed before with %v", err, waits.former)
		}
		must(t, r.make(t.Context(), "another", func(context.Context) error { return nil }, over))
		answers <- late
		<-told
		if err := r.make(t.Context(), "pod", never, over); !errors.Is(err, late) {
			t.Errorf("%v was answered, and whoever asks is told %v", late, err)
		}
		if is, err := r.former("pod"); is {
			t.Errorf("it is told twice: %v", err)
		}
	}
	r.answers["pod"] = answer{at: time.Now().Add(-answerNews), isNew: true}
	if is, _ := r.former("pod"); is {
		t.Error("an answer of long ago counts")
	}
	delete(r.answers, "pod")
	if len(r.answers) > 0 || len(r.underWay.underWay) > 0 {
		t.Errorf("what was answered and told is kept: %v, %v", r.answers, r.underWay.underWay)
	}
}

// What a webhook refuses, slowly, each time is told all the time, and not each time anew.
func TestWhatIsUnderWayIsToldByWhyItFailedBefore(t *testing.T) {
	e, why := core.CreatePod{Instance: "c-2"}, errors.New("denied")
	var failed, waits failures
	failed.note(e, why)
	waits.note(e, &underWayError{former: why})
	if len(waits.changes) > 0 || len(waits.orders) != 1 || waits.standing[0].Error() != failed.changes[0].Error() {
		t.Errorf("%+v, %+v", failed, waits)
	}
}

// A Pod that is under way may be made by its name, and by no other.
func TestAPodThatIsUnderWayIsNotTakenForOneThatWasNotMade(t *testing.T) {
	c := aCluster()
	h := newHooked(t, aVolume("c-1", "v-1"))
	act, ca := anActor(newAPI(t)), anAuthority(t)
	act.client, act.live, act.prerequisites = h, h, newPrerequisites(h, h)
	giveAccounts(t, h)
	ask := func(name string) error {
		return act.change(t.Context(), c, ca, core.CreatePod{Instance: "c-1", Ordinal: 1, Awaited: name})
	}
	for _, name := range []string{"awaited-1", "awaited-2", "awaited-1"} {
		var waits *underWayError
		if err := ask(name); !errors.As(err, &waits) {
			t.Fatal(err)
		}
	}
	if got := act.unmade.of(c, "c-1"); !slices.Equal(got, []string{"awaited-2"}) {
		t.Errorf("while awaited-1 is being made, surely not made are %v", got)
	}
	h.answer <- apierrors.NewInternalError(errors.New("it may have been made"))
	for is := false; !is; { // its answer is the former one's
		is = !act.requests.isUnderWay(requestName(c, podOf("c-1")))
	}
	if err := ask("awaited-1"); !apierrors.IsInternalError(err) || h.asked.Load() != 1 {
		t.Errorf("%d Pods are asked for: %v", h.asked.Load(), err)
	}
	if got := act.unmade.of(c, "c-1"); !slices.Equal(got, []string{"awaited-2"}) {
		t.Errorf("after an error that tells nothing, surely not made are %v", got)
	}
}

// A Pod goes on for as long as it is not known whether there can be another one.
func TestAPodIsNotDeletedBeforeTheNextOneIsKnownToBeValid(t *testing.T) {
	for name, refusal := range map[string]error{"valid": nil,
		"invalid": apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "c-2", nil)} {
		t.Run(name, func(t *testing.T) {
			c, h := aCluster(), newHooked(t, aVolume("c-2", "v-2"), aPod("c-2", "pod-2", "n2"))
			act := anActor(newAPI(t))
			act.client, act.live = h, h
			restart := func() error {
				return act.change(t.Context(), c, nil, core.DeletePod{Instance: "c-2", UID: "pod-2",
					Reason: core.ReasonRollout})
			}
			var waits *underWayError
			there := func() bool {
				return h.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c-2"}, &corev1.Pod{}) == nil
			}
			if err := restart(); !errors.As(err, &waits) || !there() {
				t.Fatalf("it is there: %t; %v", there(), err)
			}
			h.answer <- refusal
			err := restart()
			for errors.As(err, &waits) {
				err = restart()
			}
			if isRefused := err != nil && strings.Contains(err.Error(), "correct the spec"); there() != isRefused ||
				isRefused != (refusal != nil) || h.asked.Load() != 1 {
				t.Errorf("it is there: %t; %v", there(), err)
			}
		})
	}
}
