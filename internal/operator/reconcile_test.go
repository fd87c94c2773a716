package operator

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

// operatorOf is a whole operator on an API server, which both its caches and it itself read.
func operatorOf(t *testing.T, f client.Client) *Reconciler {
	r := newTestReconciler(t, f, f)
	r.Recorder, r.Metrics = &events.FakeRecorder{}, NewMetrics(prometheus.NewRegistry())
	r.actor = &actor{client: f, live: f, prerequisites: r.prerequisites, streams: r.streams,
		orders: newOrders(), requests: newRequests(),
		unmade: r.observer.unmade, operatorImage: "cnmsql", defaultImage: "mysql"}
	return r
}

func aNewCluster() *v1alpha1.Cluster {
	c := aCluster()
	c.Status = v1alpha1.ClusterStatus{}
	return c
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
		r := operatorOf(t, newFake(t).WithObjects(objs...).Build())
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
