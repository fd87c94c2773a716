package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/internal/whatif"
)

// noEvents: the user has no right to list events.
func noEvents(s *scene) {
	s.client = interceptor.NewClient(s.client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, is := list.(*eventsv1.EventList); is {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("jo may not"))
			}
			return c.List(ctx, list, opts...)
		}})
}

// errHandshake is what a real API server answers whom it does not let open a stream: no Status.
var errHandshake = errors.New(`unable to upgrade connection: pods "demo-1" is forbidden: User "jo" cannot create ` +
	`resource "pods/exec" in API group "" in the namespace "shop"`)

// mayExec is a session whose API server answers a SelfSubjectAccessReview.
func mayExec(t *testing.T, allowed bool, down error) *session {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			r := obj.(*authorizationv1.SelfSubjectAccessReview)
			a := r.Spec.ResourceAttributes
			r.Status.Allowed = allowed || a.Resource != "pods" || a.Subresource != "exec" || a.Verb != "create" ||
				a.Namespace != "shop"
			return down
		}}).Build()
	return &session{client: c, namespace: "shop"}
}

func TestAMissingRightIsToldFromAnInstanceThatDoesNotAnswer(t *testing.T) {
	for name, x := range map[string]struct {
		s         *session
		forbidden bool
	}{
		"who may not":     {mayExec(t, false, nil), true},
		"who may":         {mayExec(t, true, nil), false},
		"nobody can tell": {mayExec(t, false, errors.New("no answer")), false},
	} {
		f := healthy()
		askAll(t.Context(), func(ctx context.Context, instance string) (word, error) {
			return word{}, x.s.whyNotAsked(ctx, instance, errHandshake)
		}, f)
		r := Build(*f)
		if forbidden := f.Live == nil; forbidden != x.forbidden {
			t.Errorf("%s: %s: %s; %q; %s", name, r.Writable, r.WritableBecause, r.ToDo, r.LiveProblem)
		}
		named := strings.Contains(r.LiveProblem, "pods/exec")
		if x.forbidden && (r.Writable != WritableYes || len(r.ToDo) > 0 || !named) {
			t.Errorf("%s: %s: %s; %q; %s", name, r.Writable, r.WritableBecause, r.ToDo, r.LiveProblem)
		}
	}
}

// TestWithoutTheRightToAskNothingIsGuessed: what nobody asked is no silence of an instance.
func TestWithoutTheRightToAskNothingIsGuessed(t *testing.T) {
	s := newScene(t, healthy().Cluster, func(*scene) {})
	may := mayExec(t, false, nil)
	s.ask = func(ctx context.Context, instance string) (word, error) {
		return word{}, may.whyNotAsked(ctx, instance, errHandshake)
	}
	err := (&guesser{s.caller}).guess(t.Context(), []string{"2"}, whatif.NodeLost, "")
	mustFail(t, err, "needs the right to create pods/exec")
	err = (&overrider{s.caller}).failOver(t.Context(), "1", time.Second)
	mustFail(t, err, "needs the right to create pods/exec")
}

// TestWhoMayNotWatchIsToldWhatBecameOfARequest: the request is carried out all the same.
func TestWhoMayNotWatchIsToldWhatBecameOfARequest(t *testing.T) {
	s := newScene(t, healthy().Cluster, nil, podOf("demo-2"))
	s.client = interceptor.NewClient(s.client, interceptor.Funcs{
		Watch: func(context.Context, client.WithWatch, client.ObjectList,
			...client.ListOption) (watch.Interface, error) {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, "", errors.New("jo may not"))
		}})
	lists("demo-2")(s)
	if err := (&fencer{s.caller, true}).fence(t.Context(), "2", 10*time.Second); err != nil {
		t.Error(err)
	}
	s.mustSay("demo-2 is fenced")
}
