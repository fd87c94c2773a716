package operator

import (
	"errors"
	"testing"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
)

// leaseIn is the primary's record in an API server, nil when there is none.
func leaseIn(t *testing.T, c client.Client) *coordination.Lease {
	t.Helper()
	record, err := find(t.Context(), c, &coordination.Lease{}, leaseKey(clusterKey))
	must(t, err)
	return record
}

func TestTheRecordOfThePrimaryIsMadeOnceAndLeftToItsHolder(t *testing.T) {
	a, c := newAPI(t), aCluster()
	r := newTestReconciler(t, a, a)
	must(t, r.prerequisites.lease(t.Context(), c))
	record := leaseIn(t, a)
	if record == nil || observation.LeaseFacts(record).Holder != "" || observation.LeaseFacts(record).Epoch != 0 {
		t.Fatalf("it was made as %v", record)
	}
	me := "c-1"
	record.Spec.HolderIdentity, record.Annotations = &me, map[string]string{v1alpha1.AnnotationEpoch: "1"}
	must(t, a.Update(t.Context(), record))
	must(t, r.prerequisites.lease(t.Context(), c))
	if now := leaseIn(t, a); now.ResourceVersion != record.ResourceVersion {
		t.Error("the operator has written to a record that is there")
	}
}

func TestARecordOfThePrimaryThatIsSomebodyElsesIsToldAndLeftAlone(t *testing.T) {
	for name, owner := range map[string]struct {
		uid   types.UID
		taken bool
	}{"another's": {"another", true}, "one that an instance made once": {"cluster", false}} {
		t.Run(name, func(t *testing.T) {
			a, c := newAPI(t), aCluster()
			record := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-primary",
				OwnerReferences: []metav1.OwnerReference{
					{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: owner.uid}}}}
			must(t, a.Create(t.Context(), record))
			err := newTestReconciler(t, a, a).prerequisites.lease(t.Context(), c)
			var taken *nameTakenError
			if errors.As(err, &taken) != owner.taken || !owner.taken && err != nil {
				t.Errorf("it is told as: %v", err)
			}
		})
	}
}

// Nothing is taken from whoever makes the record: it is made by the operator first.
func TestALeaseThatIsNotThereIsNotSeized(t *testing.T) {
	a, c := newAPI(t), aCluster()
	act := &actor{client: a, live: a}
	must(t, act.seizeLease(t.Context(), c, core.SeizeLease{Epoch: 2}))
	if record := leaseIn(t, a); record != nil {
		t.Errorf("seized out of nothing: %v", record)
	}
}

func TestADeletedRecordWakesWhoMakesItAgain(t *testing.T) {
	clock := newLeaseClock()
	clock.note(leaseKey(clusterKey), "7")
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	ours := map[string]string{v1alpha1.LabelCluster: "c"}
	for name, labels := range map[string]map[string]string{"c-primary": ours, "somebodys": nil} {
		l := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}}
		clock.handler().Delete(t.Context(), event.DeleteEvent{Object: l}, q)
	}
	if q.Len() != 1 {
		t.Fatalf("%d are woken", q.Len())
	}
	if who, _ := q.Get(); who.NamespacedName != clusterKey || !clock.isMissing(leaseKey(clusterKey)) {
		t.Errorf("%s is woken", who)
	}
}

// TestARecordIsSetBackInTheEpochThatTheStatusHas: an operator that is behind takes it from nobody
// who was promoted since, nor does one that saw another version of it.
func TestARecordIsSetBackInTheEpochThatTheStatusHas(t *testing.T) {
	for name, tc := range map[string]struct {
		promoted int64
		changed  bool
		epoch    int64
	}{
		"it is as it was seen":      {promoted: 3, epoch: 3},
		"another was promoted":      {promoted: 4, epoch: 99},
		"the record was renewed":    {promoted: 3, changed: true, epoch: 99},
		"the status holds no epoch": {promoted: 0, epoch: 99},
	} {
		t.Run(name, func(t *testing.T) {
			c := aCluster()
			c.Status.Promotion = &v1alpha1.PromotionStatus{Instance: "c-1", Epoch: tc.promoted}
			a := newAPI(t, c)
			who := "c-9"
			record := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-primary",
				Annotations: map[string]string{v1alpha1.AnnotationEpoch: "99"}},
				Spec: coordination.LeaseSpec{HolderIdentity: &who}}
			must(t, a.Create(t.Context(), record))
			seen := record.ResourceVersion
			if tc.changed {
				now := metav1.NowMicro()
				record.Spec.RenewTime = &now
				must(t, a.Update(t.Context(), record))
			}
			must(t, (&actor{client: a, live: a}).change(t.Context(), c, nil, core.ResetLease{Epoch: 3, Version: seen}))
			l := observation.LeaseFacts(leaseIn(t, a))
			if l.Epoch != tc.epoch || (l.Holder == "") != (tc.epoch == 3) {
				t.Errorf("it is held by %q at epoch %d", l.Holder, l.Epoch)
			}
		})
	}
}
