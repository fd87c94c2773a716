package operator

import (
	"errors"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// led tells whom each Service leads to; "" those that lead by labels.
func led(t *testing.T, server client.Client) map[string]string {
	t.Helper()
	var all corev1.ServiceList
	must(t, server.List(t.Context(), &all, client.InNamespace("ns")))
	out := map[string]string{}
	for i := range all.Items {
		out[all.Items[i].Name] = resources.RoutedTo(&all.Items[i])
	}
	return out
}

func withServices(additional ...v1alpha1.AdditionalService) *v1alpha1.Cluster {
	c := aCluster()
	c.Spec.Managed = &v1alpha1.ManagedSpec{Services: &v1alpha1.ManagedServices{Additional: additional}}
	return c
}

var (
	forWrites = v1alpha1.AdditionalService{Name: "orders", SelectorType: v1alpha1.SelectReadWrite}
	forReads  = v1alpha1.AdditionalService{Name: "reports", SelectorType: v1alpha1.SelectReadOnly}
)

// always leads to one instance, whatever was found.
func always(primary string) leads {
	return func(*corev1.Service) (string, error) { return primary, nil }
}

func keep(t *testing.T, p *prerequisites, c *v1alpha1.Cluster) {
	t.Helper()
	must(t, p.defaultServices(t.Context(), c))
	must(t, p.additionalServices(t.Context(), c))
}

// prune carries out what a look decides about Services.
func prune(t *testing.T, r *Reconciler, c *v1alpha1.Cluster) failures {
	t.Helper()
	_, plan, err := r.decide(t.Context(), c, nil)
	must(t, err)
	return r.actor.act(t.Context(), c, nil, slices.DeleteFunc(plan.Effects, func(e core.Effect) bool {
		_, prunes := e.(core.DeleteService)
		return !prunes
	}))
}

func TestAllServicesForWritesLeadToThePrimary(t *testing.T) {
	server := newAPI(t)
	p, c := newPrerequisites(server, server), withServices(forWrites, forReads)
	must(t, p.routeWrites(t.Context(), c, "c-1"))
	keep(t, p, c)
	want := map[string]string{"c-rw": "c-1", "c-ro": "", "c-r": "", "c-orders": "c-1", "c-reports": ""}
	if got := led(t, server); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
	must(t, p.routeWrites(t.Context(), c, "c-2"))
	keep(t, p, c)
	if got := led(t, server); got["c-rw"] != "c-2" || got["c-orders"] != "c-2" {
		t.Errorf("after a change of the primary: %v", got)
	}
}

// The operator ended when it had changed -rw and nothing else.
func TestAServiceThatWasLeftBehindFollowsTheDefaultOne(t *testing.T) {
	server := newAPI(t)
	p, c := newPrerequisites(server, server), withServices(forWrites)
	must(t, p.routeWrites(t.Context(), c, "c-1"))
	must(t, p.services(t.Context(), c, resources.WriteServices(c, "c-2")[:1], always("c-2")))
	keep(t, p, c)
	if got := led(t, server); got["c-rw"] != "c-2" || got["c-orders"] != "c-2" {
		t.Errorf("%v", got)
	}
}

// What is read from the cache may be older than the last change.
func TestAnOldViewOfTheDefaultServiceLeadsNobodyBack(t *testing.T) {
	server, old := newAPI(t), newAPI(t)
	c := withServices(forWrites)
	must(t, newPrerequisites(server, server).routeWrites(t.Context(), c, "c-2"))
	must(t, newPrerequisites(old, old).services(t.Context(), c, resources.WriteServices(c, "c-1")[:1], always("c-1")))
	must(t, newPrerequisites(old, old).services(t.Context(), c, resources.WriteServices(c, "c-2")[1:], always("c-2")))
	var present corev1.ServiceList
	must(t, old.List(t.Context(), &present))
	to := newPrerequisites(old, server).asDefault(t.Context(), c)
	for i := range present.Items {
		is := &present.Items[i]
		if is.Name != "c-orders" {
			continue
		}
		primary, err := to(is)
		if must(t, err); primary != "c-2" {
			t.Errorf("writes would be led to %q", primary)
		}
	}
	primary, err := to(nil)
	if must(t, err); primary != "c-2" {
		t.Errorf("writes by a Service that is made would be led to %q", primary)
	}
}

func TestServicesThatAreNoLongerWantedGo(t *testing.T) {
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-mine",
		Labels: map[string]string{v1alpha1.LabelCluster: "c", "app.kubernetes.io/component": "cluster"}}}
	c := withServices(forWrites, forReads)
	stored := c.DeepCopy()
	server := newAPI(t, theirs, stored)
	r := operatorOf(t, server)
	p := r.prerequisites
	must(t, p.apply(t.Context(), c, resources.InstanceService(c, "c-1")))
	keep(t, p, c)
	c.Spec.Managed.Services =
		&v1alpha1.ManagedServices{DisabledDefaultServices: []v1alpha1.ServiceSelector{v1alpha1.SelectReadOnly}}
	must(t, server.Get(t.Context(), clusterKey, stored))
	stored.Spec = c.Spec
	must(t, server.Update(t.Context(), stored))
	keep(t, p, c)
	withUIDs(t, server)
	server.refuseDelete = apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "c-ro",
		errors.New("a policy"))
	if done := prune(t, r, c); done.err() != nil || len(done.standing) != 3 { // nothing is hurried for it
		t.Errorf("failed: %+v", done)
	}
	server.refuseDelete = nil
	if done := prune(t, r, c); len(done.standing) > 0 {
		t.Errorf("failed: %+v", done)
	}
	want := []string{"c-1", "c-mine", "c-r", "c-rw"}
	if got := slices.Sorted(maps.Keys(led(t, server))); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Who was elected a moment ago may see Services of a spec that it does not see yet. One for which the spec asks by now
// is somebody's address.
func TestAnOldViewOfTheSpecDeletesNoService(t *testing.T) {
	old := withServices()
	server := newAPI(t, withServices(forWrites))
	r := operatorOf(t, server)
	keep(t, r.prerequisites, withServices(forWrites, forReads))
	withUIDs(t, server)
	if done := prune(t, r, old); len(done.standing) > 0 {
		t.Errorf("failed: %+v", done)
	}
	want := []string{"c-orders", "c-r", "c-ro", "c-rw"}
	if got := slices.Sorted(maps.Keys(led(t, server))); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// withUIDs gives each Service a UID, as an API server does.
func withUIDs(t *testing.T, server client.Client) {
	t.Helper()
	var all corev1.ServiceList
	must(t, server.List(t.Context(), &all, client.InNamespace("ns")))
	for i := range all.Items {
		s := &all.Items[i]
		s.UID = types.UID("uid-of-" + s.Name)
		must(t, server.Update(t.Context(), s))
	}
}

func TestWhatTheTemplateNoLongerSaysIsTakenOffTheService(t *testing.T) {
	server := newAPI(t)
	p, c := newPrerequisites(server, server), withServices()
	c.Spec.Managed.Services.Template = &v1alpha1.ServiceTemplate{
		Metadata: v1alpha1.ServiceTemplateMetadata{Labels: map[string]string{"pool": "a"},
			Annotations: map[string]string{"scheme": "internal"}},
		Spec: v1alpha1.ServiceTemplateSpec{SessionAffinity: corev1.ServiceAffinityClientIP},
	}
	keep(t, p, c)
	key := client.ObjectKey{Namespace: "ns", Name: "c-ro"}
	var s corev1.Service
	must(t, server.Get(t.Context(), key, &s))
	s.Annotations["others"] = "own" // by another: it stays
	must(t, server.Update(t.Context(), &s))
	c.Spec.Managed = nil
	keep(t, p, c)
	var after corev1.Service
	must(t, server.Get(t.Context(), key, &after))
	if after.Labels["pool"] != "" || after.Annotations["scheme"] != "" || after.Annotations["others"] != "own" ||
		after.Spec.SessionAffinity != "" {
		t.Errorf("%v %v %v", after.Labels, after.Annotations, after.Spec)
	}
}

// What is told follows "could not", and what else could not be done is on the same line.
func TestATakenServiceIsToldInASentence(t *testing.T) {
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-orders"}}
	server := newAPI(t, theirs)
	r, c := operatorOf(t, server), withServices(forWrites)
	done := failures{changes: []error{errors.New("grow the volume of c-1 to 2Gi: no")}}
	done.stands(r.prerequisites.additionalServices(t.Context(), c))
	r.noteFailure(quietly(t), c, done)
	const want = "make the Service c-orders: the Service c-orders exists and does not belong to this Cluster; delete " +
		"or rename it, or give the Cluster another name (see spec.managed.services); grow the volume of c-1 to 2Gi: no"
	if got := r.state(c).failed; got != want {
		t.Errorf("it could not\n%s\nwant\n%s", got, want)
	}
}
