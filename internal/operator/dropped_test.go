package operator

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// older is an API server of an earlier release, which drops a field of the status.
type older struct {
	client.Client
	drops  bool
	writes int
}

func (o *older) Status() client.SubResourceWriter { return olderStatus{o.Client.Status(), o} }

type olderStatus struct {
	client.SubResourceWriter
	of *older
}

func (s olderStatus) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	s.of.writes++
	if c, is := o.(*v1alpha1.Cluster); is && s.of.drops {
		c.Status.LabelSelector, c.Status.Blocked = "", nil
	}
	return s.SubResourceWriter.Update(ctx, o, opts...)
}

func TestAnAPIServerThatDropsFieldsIsTold(t *testing.T) {
	f := newFlaky(t, aNewCluster(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast",
		Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}})
	o := &older{Client: f, drops: true}
	r, told := operatorOf(t, f), &events.FakeRecorder{Events: make(chan string, 99)}
	reg := prometheus.NewRegistry()
	r.Client, r.Recorder, r.Metrics = o, told, NewMetrics(reg)
	look := func() v1alpha1.ClusterStatus {
		t.Helper()
		_, err := r.Reconcile(quietly(t), ctrl.Request{NamespacedName: clusterKey})
		must(t, err)
		var c v1alpha1.Cluster
		must(t, f.Get(t.Context(), clusterKey, &c))
		return c.Status
	}
	var is v1alpha1.ClusterStatus
	for range 6 {
		is = look()
	}
	if is.Phase != string(core.PhaseBlocked) ||
		!strings.Contains(is.PhaseReason, "status.blocked, status.labelSelector") {
		t.Fatalf("%s: %s", is.Phase, is.PhaseReason)
	}
	before, events := o.writes, len(told.Events)
	for range 5 {
		look()
	}
	if o.writes != before {
		t.Errorf("it is written %d times more, and nothing has changed", o.writes-before)
	}
	if len(told.Events) != events {
		t.Errorf("%d events are told again", len(told.Events)-events)
	}
	if n := countedEvents(t, reg); n != events {
		t.Errorf("%d events are counted, and %d are told", n, events)
	}
	o.drops = false
	r.state(named("ns", "c")).written = time.Now().Add(-droppedAgain)
	for range 3 {
		is = look()
	}
	if is.Phase == string(core.PhaseBlocked) || is.LabelSelector == "" {
		t.Errorf("still, with the right definition: %s, %q", is.Phase, is.LabelSelector)
	}
}
