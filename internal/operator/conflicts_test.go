package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// anotherWasQuicker is what the API server answers when an object has changed since it was read: here one that a
// quota counts in, when a Pod is made.
var anotherWasQuicker = apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q",
	errors.New("the object has been modified; please apply your changes to the latest version and try again"))

// contended is an operator of a new Cluster. The first so many requests to make a Pod are conflicts; told are the
// events since the last time.
func contended(t *testing.T, conflicts int) (r *Reconciler, asked *int, told func() string) {
	asked = new(int)
	server := newFake(t).WithReturnManagedFields().WithStatusSubresource(&v1alpha1.Cluster{}).
		WithObjects(aNewCluster()).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			if _, is := obj.(*corev1.Pod); is {
				if *asked++; *asked <= conflicts {
					return anotherWasQuicker
				}
			}
			return c.Create(ctx, obj, o...)
		}}).Build()
	r = operatorOf(t, server)
	events := make(chan string, 1000)
	r.Recorder = recorderTo(events)
	return r, asked, func() string {
		var all []string
		for len(events) > 0 {
			all = append(all, <-events)
		}
		return strings.Join(all, "\n")
	}
}

func recorderTo(told chan string) *events.FakeRecorder { return &events.FakeRecorder{Events: told} }

// TestAConflictIsTriedAgainAtOnceAndToldToNobody has a Pod made in one look although somebody was quicker three
// times.
func TestAConflictIsTriedAgainAtOnceAndToldToNobody(t *testing.T) {
	r, asked, told := contended(t, 3)
	for range 4 { // those before the first Pod make what it needs
		_, err := r.Reconcile(quietly(t), ctrl.Request{NamespacedName: clusterKey})
		must(t, err)
		if *asked > 0 {
			break
		}
	}
	var pod corev1.Pod
	must(t, r.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c-1"}, &pod))
	var c v1alpha1.Cluster
	must(t, r.Client.Get(t.Context(), clusterKey, &c))
	if text := told() + fmt.Sprint(c.Status.Notices) + c.Status.PhaseReason; *asked < 4 ||
		strings.Contains(text, "ActionFailed") || strings.Contains(text, "has been modified") {
		t.Errorf("after %d requests this is told: %s", *asked, text)
	}
	if kept := r.clusters.of(clusterKey).conflicts; kept != 0 {
		t.Errorf("%d conflicts are counted still", kept)
	}
}

// TestWhatIsAConflictAgainAndAgainIsTold as any other failure, and is not asked for without a pause.
func TestWhatIsAConflictAgainAndAgainIsTold(t *testing.T) {
	r, asked, told := contended(t, 1000)
	for range 4 {
		result, err := r.Reconcile(quietly(t), ctrl.Request{NamespacedName: clusterKey})
		must(t, err)
		if *asked > 0 && result.RequeueAfter < core.TurnOver {
			t.Errorf("it is looked at again after %s", result.RequeueAfter)
		}
	}
	var c v1alpha1.Cluster
	must(t, r.Client.Get(t.Context(), clusterKey, &c))
	if text := told(); *asked <= looks || !strings.Contains(text, "ActionFailed") ||
		!strings.Contains(text, "has been modified") {
		t.Errorf("after %d requests this is told: %s", *asked, text)
	}
}

// TestOfSeveralErrorsEachHasToBeAConflict holds that no refusal hides behind a conflict.
func TestOfSeveralErrorsEachHasToBeAConflict(t *testing.T) {
	other := errors.New("the API server does not answer")
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"none":                         {nil, false},
		"another":                      {other, false},
		"a refusal":                    {aPolicyRefuses, false},
		"an object that exists":        {apierrors.NewAlreadyExists(schema.GroupResource{}, "c-1"), false},
		"a conflict":                   {anotherWasQuicker, true},
		"a conflict in words":          {fmt.Errorf("apply: %w", anotherWasQuicker), true},
		"two conflicts":                {errors.Join(anotherWasQuicker, anotherWasQuicker), true},
		"a conflict and a refusal":     {errors.Join(anotherWasQuicker, aPolicyRefuses), false},
		"a refusal, then a conflict":   {errors.Join(aPolicyRefuses, anotherWasQuicker), false},
		"such two in words":            {fmt.Errorf("to: %w", errors.Join(aPolicyRefuses, anotherWasQuicker)), false},
		"a conflict and another error": {refusals{anotherWasQuicker, other}, false},
	} {
		if got := isConflict(c.err); got != c.want {
			t.Errorf("%s: %v, wanted %v", name, got, c.want)
		}
	}
}
