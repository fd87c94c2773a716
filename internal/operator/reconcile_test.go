package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
)

// flaky is an API server that fails one call. One that fails late has done what it was asked.
type flaky struct {
	client.WithWatch
	calls, failAt int
	late          bool
}

var errFlaky = errors.New("the API server does not answer")

func (f *flaky) do(call func() error) error {
	f.calls++
	if f.calls != f.failAt {
		return call()
	}
	if f.late {
		_ = call()
	}
	return errFlaky
}

func newFlaky(t *testing.T, failAt int, late bool, objs ...client.Object) *flaky {
	t.Helper()
	f := &flaky{failAt: failAt, late: late}
	f.WithWatch = newFake(t).WithReturnManagedFields().WithStatusSubresource(
		&v1alpha1.Cluster{}).WithObjects(objs...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			o ...client.GetOption) error {
			return f.do(func() error { return c.Get(ctx, key, obj, o...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			return f.do(func() error { return c.List(ctx, list, o...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			return f.do(func() error { return c.Create(ctx, obj, o...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			return f.do(func() error { return c.Delete(ctx, obj, o...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.UpdateOption) error {
			return f.do(func() error { return c.Update(ctx, obj, o...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch,
			o ...client.PatchOption) error {
			return f.do(func() error { return c.Patch(ctx, obj, p, o...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration,
			o ...client.ApplyOption) error {
			return f.do(func() error { return c.Apply(ctx, obj, o...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object,
			o ...client.SubResourceUpdateOption) error {
			return f.do(func() error { return c.SubResource(sub).Update(ctx, obj, o...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch,
			o ...client.SubResourcePatchOption) error {
			return f.do(func() error { return c.SubResource(sub).Patch(ctx, obj, p, o...) })
		},
	}).Build()
	return f
}

// operatorOf is a whole operator on an API server, which both its caches and it itself read.
func operatorOf(t *testing.T, f client.Client) *Reconciler {
	r := newTestReconciler(t, f, f)
	r.Recorder, r.Metrics = &events.FakeRecorder{}, NewMetrics(prometheus.NewRegistry())
	r.actor = &actor{client: f, live: f, prerequisites: r.prerequisites, streams: r.streams,
		orders: newOrders(), requests: newRequests(),
		unmade: r.observer.unmade, operatorImage: "cnmsql", defaultImage: "mysql"}
	return r
}

// made are the names of all that was made, by kind.
func (f *flaky) made(t *testing.T) []string {
	t.Helper()
	failAt := f.failAt
	f.failAt = 0
	defer func() { f.failAt = failAt }()
	var names []string
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.PersistentVolumeClaimList{},
		&corev1.ServiceList{}, &corev1.SecretList{}, &corev1.ServiceAccountList{},
		&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &policyv1.PodDisruptionBudgetList{}, &coordination.LeaseList{}} {
		must(t, f.WithWatch.List(t.Context(), list, client.InNamespace("ns")))
		must(t, meta.EachListItem(list, func(o runtime.Object) error {
			names = append(names, fmt.Sprintf("%T %s", o, o.(client.Object).GetName()))
			return nil
		}))
	}
	slices.Sort(names)
	return names
}

// provision has an operator make a new Cluster of two instances, holds the invariants after
// each look, and tells what was made in the end.
func provision(t *testing.T, f *flaky) []string {
	t.Helper()
	r := operatorOf(t, f)
	epoch := int64(0)
	for range 6 {
		_, err := r.Reconcile(quietly(t), ctrl.Request{NamespacedName: clusterKey})
		if err != nil && !errors.Is(err, errFlaky) {
			t.Fatal(err)
		}
		var c v1alpha1.Cluster
		must(t, client.IgnoreNotFound(func() error {
			failAt := f.failAt
			f.failAt = 0
			defer func() { f.failAt = failAt }()
			return f.WithWatch.Get(t.Context(), clusterKey, &c)
		}()))
		if c.Status.PrimaryEpoch < epoch {
			t.Errorf("the epoch went back from %d to %d", epoch, c.Status.PrimaryEpoch)
		}
		epoch = c.Status.PrimaryEpoch
		for _, name := range f.made(t) {
			kind, name, _ := strings.Cut(name, " ")
			if (kind == "*v1.Pod" || kind == "*v1.PersistentVolumeClaim") &&
				!slices.Contains(c.Status.InstanceNames, name) {
				t.Errorf("%s %s was made, and the status does not name it: %v", kind, name, c.Status.InstanceNames)
			}
		}
	}
	return f.made(t)
}

func aNewCluster() *v1alpha1.Cluster {
	c := aCluster()
	c.Status = v1alpha1.ClusterStatus{}
	return c
}

// Whichever call fails, before or after it was carried out, the operator makes the same in
// the end, and nothing that is not written down first. Each call takes a third of a second:
// CALLS=all go test ./internal/operator -run TestWhichever fails all of them, in five minutes.
func TestWhicheverCallFailsAClusterIsMade(t *testing.T) {
	clean := newFlaky(t, 0, false, aNewCluster())
	want := provision(t, clean)
	if !slices.Contains(want, "*v1.Pod c-2") || !slices.Contains(want, "*v1.Service c-rw") {
		t.Fatalf("without a failure only this is made: %v", want)
	}
	every := 29
	if os.Getenv("CALLS") == "all" {
		every = 1
	}
	for _, late := range []bool{false, true} {
		for n := 1 + every/2; n <= clean.calls; n += every {
			got := provision(t, newFlaky(t, n, late, aNewCluster()))
			if !slices.Equal(got, want) {
				t.Errorf("call %d of %d fails (carried out: %t): made are %v, not %v", n, clean.calls, late, got, want)
			}
		}
	}
}

// After a conflict a look goes on for the Cluster that it began with, and for no other: what it
// holds by then, the authority and what the instances said, is that Cluster's.
func TestAfterAConflictALookGoesOnForItsOwnClusterOnly(t *testing.T) {
	changed := func(change func(*v1alpha1.Cluster)) *v1alpha1.Cluster {
		c := aNewCluster()
		change(c)
		return c
	}
	deleted := metav1.Now()
	for what, test := range map[string]struct {
		now    *v1alpha1.Cluster
		goesOn bool
	}{
		"somebody wrote":      {changed(func(c *v1alpha1.Cluster) { c.Spec.Instances = 5 }), true},
		"another of its name": {changed(func(c *v1alpha1.Cluster) { c.UID = "another" }), false},
		"it is being deleted": {changed(func(c *v1alpha1.Cluster) {
			c.DeletionTimestamp, c.Finalizers = &deleted, []string{"x"}
		}), false},
		"there is none at all": {nil, false},
	} {
		var objs []client.Object
		if test.now != nil {
			objs = append(objs, test.now)
		}
		r := operatorOf(t, newFlaky(t, 0, false, objs...))
		c, err := r.reread(t.Context(), aNewCluster())
		must(t, err)
		if goesOn := c != nil; goesOn != test.goesOn {
			t.Errorf("%s: it goes on: %t", what, goesOn)
		}
		if kept := r.clusters.of(clusterKey).latest != nil; kept != test.goesOn {
			t.Errorf("%s: it is kept for the next look: %t", what, kept)
		}
	}
}
