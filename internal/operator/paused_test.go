package operator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// age has some time pass since all that failed.
func (a *attempts) age(by time.Duration) {
	for _, failed := range a.failed {
		for what, f := range failed {
			f.at = f.at.Add(-by)
			failed[what] = f
		}
	}
}

// aPolicyRefuses is what the API server answers where an admission webhook does not let an object pass.
var aPolicyRefuses = apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "c-1",
	errors.New("a policy refuses it"))

// TestWhatIsRefusedIsAskedForAgainAfterAPause that grows up to a minute, and is told meanwhile. What the
// spec says by now was not refused yet.
func TestWhatIsRefusedIsAskedForAgainAfterAPause(t *testing.T) {
	var all attempts
	c, asked, refused := aCluster(), 0, true
	aside := core.Problem{Reason: core.ProblemSecretIncomplete, Message: "too long"}
	for n, step := range []struct {
		passed time.Duration
		change func()
		asked  bool
	}{
		{asked: true}, {}, {passed: 4 * time.Second},
		{passed: time.Second, asked: true}, {passed: 9 * time.Second}, {passed: time.Second, asked: true},
		{passed: 20 * time.Second, asked: true}, {passed: 40 * time.Second, asked: true},
		{passed: 59 * time.Second}, {passed: time.Second, asked: true},
		{passed: 59 * time.Second}, {passed: time.Second, asked: true},
		{change: func() { c.Generation++ }, asked: true}, {passed: 4 * time.Second}, {passed: time.Second, asked: true},
		{passed: time.Minute, change: func() { refused = false }, asked: true}, {asked: true},
		{change: func() { refused = true }, asked: true}, {passed: 5 * time.Second, asked: true},
	} {
		if step.change != nil {
			step.change()
		}
		all.age(step.passed)
		asked = 0
		var asides []core.Problem
		err := all.all(t.Context(), c, []attempt{{"a", func(context.Context, *v1alpha1.Cluster) error {
			asked++
			asides = append(asides, aside)
			if refused {
				return fmt.Errorf("apply Service c-1: %w", aPolicyRefuses)
			}
			return nil
		}}}, &asides)
		if asked > 0 != step.asked || (err != nil) != refused || !reflect.DeepEqual(asides, []core.Problem{aside}) {
			t.Errorf("step %d: asked %d times, %v, and besides %v", n, asked, err, asides)
		}
	}
}

// TestWhatIsNoRefusalIsLookedAtEachTime: what the user is told to mend, what has changed meanwhile, what
// nobody has answered, and the record that a failover waits for.
func TestWhatIsNoRefusalIsLookedAtEachTime(t *testing.T) {
	for what, err := range map[string]error{
		"a Secret":   &userError{core.Problem{Reason: core.ProblemSecretMissing, Message: "make it"}},
		"a name":     fmt.Errorf("it is another's: %w", &nameTakenError{kind: "Service", name: "c-1"}),
		"a conflict": apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "c-root", nil),
		"no answer":  errors.New("connection refused"),
		attemptLease: aPolicyRefuses,
	} {
		var all attempts
		asked := 0
		list := []attempt{{what, func(context.Context, *v1alpha1.Cluster) error { asked++; return err }}}
		for range 3 {
			if all.all(t.Context(), aCluster(), list, new([]core.Problem)) == nil {
				t.Errorf("%s: that it failed is not told", what)
			}
		}
		if asked != 3 {
			t.Errorf("%s: it was looked at %d times of 3", what, asked)
		}
	}
}

// TestALookAsksNotForAllThatWasRefused: a policy that refuses all objects of a Cluster is not asked for
// dozens of them every few seconds.
func TestALookAsksNotForAllThatWasRefused(t *testing.T) {
	asked := 0
	refuse := func() error { asked++; return aPolicyRefuses }
	server := newFake(t).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return refuse()
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return refuse()
		},
	}).Build()
	c, r := aCluster(), newTestReconciler(t, server, server)
	r.observer.leases.note(leaseKey(clusterKey), "7")
	r.says("c-1", core.Report{WritableEpoch: 1})
	_, first := r.prepare(t.Context(), c)
	asked = 0
	_, again := r.prepare(t.Context(), c)
	if asked > 2 || first == nil || again == nil || *again != *first { // the authority, and the Lease
		t.Errorf("asked for %d objects again; told %v, and then %v", asked, first, again)
	}
	c.Generation++
	if r.prepare(t.Context(), c); asked < 10 {
		t.Errorf("of another spec it asked for %d objects", asked)
	}
}
