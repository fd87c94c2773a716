package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

// refusing is an API server that refuses to apply objects of some names.
func refusing(t *testing.T, names *[]string, objs ...client.Object) client.Client {
	return newFake(t).WithReturnManagedFields().WithObjects(objs...).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, w client.WithWatch, obj runtime.ApplyConfiguration,
			o ...client.ApplyOption) error {
			if name := obj.(interface{ GetName() string }).GetName(); slices.Contains(*names, name) {
				return fmt.Errorf("a webhook refuses %s", name)
			}
			return w.Apply(ctx, obj, o...)
		}}).Build()
}

// endsSoon is a certificate of an instance that has to be renewed.
func endsSoon(t *testing.T, c *v1alpha1.Cluster, ca *pki.CA, instance string) client.Object {
	t.Helper()
	bundle, err := ca.Issue(pki.InstanceLeaf(instance, c.Namespace, resources.ServiceNames(c, instance)...),
		time.Now().Add(-360*24*time.Hour))
	must(t, err)
	return resources.InstanceTLSSecret(c, instance, bundle)
}

// TestWhatIsRefusedHindersNothingElse: certificates are renewed, and accounts kept, although objects that
// have nothing to do with them are refused. All that was refused is told.
func TestWhatIsRefusedHindersNothingElse(t *testing.T) {
	names, c := resources.Names("c"), aCluster()
	bundle, err := pki.NewCA("c", time.Now().Add(-361*24*time.Hour))
	must(t, err)
	ca, err := pki.ParseCA(bundle)
	must(t, err)
	refused := []string{names.RootSecret(), names.DisruptionBudget(), "c-1"}
	server := refusing(t, &refused, resources.CASecret(c, bundle), endsSoon(t, c, ca, "c-1"), endsSoon(t, c, ca, "c-2"))
	before := map[string]*corev1.Secret{}
	for _, instance := range c.Status.InstanceNames {
		before[instance] = secretOf(t, server, c, resources.TLSSecret(instance))
	}
	r := newTestReconciler(t, server, server)
	got, problem := r.prepare(t.Context(), c)
	if got == nil || problem == nil || problem.Reason != core.ProblemPrerequisites {
		t.Fatalf("the authority is there: %v, and the problem is %v", got != nil, problem)
	}
	for _, name := range refused {
		if !strings.Contains(problem.Message, "a webhook refuses "+name) {
			t.Errorf("that %s is refused is not told: %s", name, problem.Message)
		}
	}
	if strings.Count(problem.Message, "it is tried again") != 1 || strings.Contains(problem.Message, "RoleBinding") {
		t.Errorf("it says %s", problem.Message)
	}
	for _, instance := range []string{"c-1", "c-2"} {
		now := secretOf(t, server, c, resources.TLSSecret(instance))
		if string(now.Data[corev1.TLSCertKey]) == string(before[instance].Data[corev1.TLSCertKey]) {
			t.Errorf("the certificate of %s is not renewed", instance)
		}
	}
	secretOf(t, server, c, names.AppSecret())
	refused = nil
	if _, problem = r.prepare(t.Context(), changed(c)); problem != nil {
		t.Errorf("nothing is refused any more, and it says %v", problem)
	}
}

// TestWhatTheUserHasToMendGivesTheProblemItsName, whatever else was refused before.
func TestWhatTheUserHasToMendGivesTheProblemItsName(t *testing.T) {
	missing := &userError{core.Problem{Reason: core.ProblemSecretMissing, Message: "make it"}}
	p := problemFrom(together(errors.New("no quota"), nil, together(missing, errors.New("no label"))))
	want := core.Problem{Reason: core.ProblemSecretMissing,
		Message: "make it; PrerequisitesFailed: no quota; PrerequisitesFailed: no label; it is tried again"}
	if *p != want {
		t.Errorf("got %+v", *p)
	}
}

// TestWhatIsRefusedIsNotAskedForAtEachLookOfAFailover: who waits for it waits for no answer of a webhook.
func TestWhatIsRefusedIsNotAskedForAtEachLookOfAFailover(t *testing.T) {
	refused := []string{resources.Names("c").DisruptionBudget()}
	server, c := refusing(t, &refused), aCluster()
	r := newTestReconciler(t, server, server)
	r.observer.leases.note(leaseKey(clusterKey), "7")
	for _, step := range []struct {
		epoch int64 // in which the primary takes writes
		told  bool
	}{{1, true}, {0, true}, {1, false}} {
		r.says("c-1", core.Report{WritableEpoch: step.epoch})
		if step.epoch == 0 {
			refused = nil
		}
		if _, problem := r.prepare(t.Context(), c); (problem != nil) != step.told {
			t.Errorf("writable in epoch %d: %v", step.epoch, problem)
		}
	}
}

// TestWhatTakesLongComesLastTheNextTime: an API server that answers for one object only after a while
// keeps nothing else from being made, and nobody waits for all of them that are stuck.
func TestWhatTakesLongComesLastTheNextTime(t *testing.T) {
	var tried []string
	stuck := map[string]bool{"a": true, "c": true}
	var list []attempt
	for _, what := range []string{"a", "b", "c", "d"} {
		list = append(list, attempt{what, func(context.Context, *v1alpha1.Cluster) error {
			if tried = append(tried, what); stuck[what] {
				<-time.After(attemptLimit + time.Millisecond)
				return errors.New(what + " takes long")
			}
			return nil
		}})
	}
	var all attempts
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	for _, step := range []struct{ tried, told string }{
		{"a", "a takes long"},
		{"b c", "a takes long; c takes long"},
		{"b d a", "a takes long; c takes long"},
		{"b d c a", "a takes long"},
	} {
		if step.told == "a takes long" && len(tried) > 0 {
			stuck["c"] = false
		}
		tried = nil
		err := all.all(t.Context(), c, list, new([]core.Problem))
		if got := strings.Join(tried, " "); got != step.tried || err.Error() != step.told {
			t.Errorf("tried %s, told %v, want %+v", got, err, step)
		}
	}
	all.keepOnly(clusterKey, list[1:])
	if err := together(all.of(clusterKey, list)...); err != nil {
		t.Errorf("what is not needed any more is told: %v", err)
	}
}
