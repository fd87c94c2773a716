package operator

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"cnmsql.co/internal/core"
)

func TestClustersThatNobodyCanWriteToComeFirst(t *testing.T) {
	down := map[string]bool{"b": true, "d": true}
	q := &urgentFirst{isUrgent: func(c types.NamespacedName) bool { return down[c.Name] },
		PriorityQueue: priorityqueue.New("test", func(o *priorityqueue.Opts[reconcile.Request]) {
			o.RateLimiter = workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()
		})}
	t.Cleanup(q.ShutDown)
	of := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
	}
	for _, name := range []string{"a", "b", "c"} {
		q.Add(of(name))
	}
	q.AddAfter(of("d"), 0)
	// What was urgent when it was looked at, and is not any more, is not urgent.
	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(urgent)}, of("e"))
	var order []string
	for range 5 {
		got, _, _ := q.GetWithPriority()
		order = append(order, got.Name)
		q.Done(got)
	}
	if fmt.Sprint(order) != "[b d a c e]" {
		t.Errorf("they come as %v", order)
	}
}

func TestWhoCannotBeWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		says *core.Report
		want bool
	}{
		"its primary takes writes":         {&core.Report{State: core.Running, WritableEpoch: 1}, false},
		"its primary does not take writes": {&core.Report{State: core.Stopped}, true},
		"its primary is not heard":         {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			a, c := newAPI(t), aCluster()
			r := newTestReconciler(t, a, a)
			if r.cannotBeWritten(clusterKey) {
				t.Error("one that was never looked at is urgent")
			}
			r.clusters.notePrimary(c)
			if tc.says != nil {
				r.says("c-1", *tc.says)
			}
			if got := r.cannotBeWritten(clusterKey); got != tc.want {
				t.Errorf("it is urgent: %v", got)
			}
		})
	}
}
