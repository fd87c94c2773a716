package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/resources"
)

// TestARefusalIsNoTimeout: only an answer to the only request tells that no Pod was made.
func TestARefusalIsNoTimeout(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, c := range []struct {
		err     error
		took    time.Duration
		refused bool
	}{
		{nil, 0, false},
		{apierrors.NewForbidden(pods, "c-1", errors.New("exceeded quota")), 0, true},
		{apierrors.NewAlreadyExists(pods, "c-1"), 0, true},
		{apierrors.NewTooManyRequests("later", 1), 0, true},
		{fmt.Errorf("create: %w", apierrors.NewBadRequest("no")), 0, true},
		{apierrors.NewForbidden(pods, "c-1", errors.New("exceeded quota, by the Pod that the first request made")),
			askedAgain, false},
		{apierrors.NewInternalError(errors.New("etcdserver: request timed out")), 0, false},
		{apierrors.NewServerTimeout(pods, "create", 0), 0, false},
		{apierrors.NewTimeoutError("request did not complete", 0), 0, false},
		{apierrors.NewGenericServerResponse(408, "POST", pods, "c-1", "", 0, true), 0, false},
		{context.DeadlineExceeded, 0, false},
		{errors.New("connection reset by peer"), 0, false},
	} {
		if got := isRefused(c.err, c.took); got != c.refused {
			t.Errorf("%v after %s: refused %t", c.err, c.took, got)
		}
	}
}

// TestAnAwaitedPodBearsItsName: and is not out of date by that.
func TestAnAwaitedPodBearsItsName(t *testing.T) {
	c := aCluster()
	claim, err := resources.VolumeClaim(c, "c-1", 1)
	must(t, err)
	a := newAPI(t, claim)
	var refuse error
	asking := interceptor.NewClient(a.Client.(client.WithWatch), interceptor.Funcs{Create: func(ctx context.Context,
		w client.WithWatch, obj client.Object, o ...client.CreateOption) error {
		if _, is := obj.(*corev1.Pod); is && refuse != nil {
			return refuse
		}
		return w.Create(ctx, obj, o...)
	}})
	act, ca := anActor(a), anAuthority(t)
	act.client = asking
	giveAccounts(t, a)
	expect := func(name string, err error, notMade ...string) {
		t.Helper()
		refuse = err
		_ = act.change(t.Context(), c, ca, core.CreatePod{Instance: "c-1", Ordinal: 1, Awaited: name})
		if got := act.unmade.of(c, "c-1"); !slices.Equal(got, notMade) {
			t.Errorf("%s, %v: not made are %v", name, err, got)
		}
	}
	expect("awaited-1", apierrors.NewForbidden(schema.GroupResource{}, "c-1", errors.New("exceeded quota")),
		"awaited-1")
	expect("awaited-1", context.DeadlineExceeded)
	expect("awaited-2", nil)
	var pod corev1.Pod
	must(t, a.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "c-1"}, &pod))
	if facts := observation.PodFacts(&pod, act.wanted(t.Context(), c, "c-1", 1)); facts.Awaited != "awaited-2" ||
		!facts.Current {
		t.Errorf("awaited as %q, current %t", facts.Awaited, facts.Current)
	}
	must(t, act.label(t.Context(), c, core.LabelPod{Instance: "c-1", Role: "primary"}))
	must(t, a.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "c-1"}, &pod))
	if pod.Annotations[v1alpha1.AnnotationAwaited] != "awaited-2" || pod.Labels[v1alpha1.LabelRole] != "primary" {
		t.Errorf("after a label: %v, %v", pod.Annotations, pod.Labels)
	}
	expect("awaited-3", nil, "awaited-3") // there is one already
	must(t, a.Delete(t.Context(), claim))
	expect("awaited-4", nil, "awaited-3", "awaited-4") // there is nothing to mount
	for i := range 2 * core.NotMadeKept {
		act.unmade.note(podKeyOf(c, "c-1"), core.AwaitedPod(10+i))
	}
	if n := len(act.unmade.of(c, "c-1")); n != core.NotMadeKept {
		t.Errorf("%d are remembered", n)
	}
	act.unmade.keepOnly(clusterKey, "")
	if got := act.unmade.of(c, "c-1"); len(got) != 0 {
		t.Errorf("a Cluster that is gone leaves %v", got)
	}
}

// TestAPodThatNeverHadANode: it never ran once it is deleted, and not merely under other
// labels.
func TestAPodThatNeverHadANode(t *testing.T) {
	pod := aPod("c-1", "next", "")
	pod.Annotations = map[string]string{v1alpha1.AnnotationAwaited: "awaited-1"}
	hidden, placed, another := pod.DeepCopy(), pod.DeepCopy(), pod.DeepCopy()
	hidden.Labels = nil
	placed.Spec.NodeName = "n1"
	another.UID = "another"
	for name, c := range map[string]struct {
		deleted, there *corev1.Pod
		never          bool
	}{
		"it is gone":            {pod, nil, true},
		"there is another":      {pod, another, true},
		"its labels were taken": {pod, hidden, false},
		"it had a node":         {placed, nil, false},
	} {
		live := newAPI(t)
		if c.there != nil {
			must(t, live.Create(t.Context(), c.there.DeepCopy()))
		}
		r := newTestReconciler(t, live, live)
		woken := false
		r.noteUnmade(t.Context(), c.deleted, func() { woken = true })
		if got := r.observer.unmade.of(aCluster(), "c-1"); woken != c.never ||
			slices.Contains(got, "awaited-1") != c.never {
			t.Errorf("%s: woken %t, not made %v", name, woken, got)
		}
	}
}
