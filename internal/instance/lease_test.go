package instance

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
)

func leaseOf(k *fakeKube, me string) *lease {
	return &lease{kube: k, me: me, meta: func() metav1.ObjectMeta {
		return leaseMeta("ns", &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "uid"}})
	}}
}

func TestALeaseIsTakenOverByAHigherEpochOnly(t *testing.T) {
	ctx, k := context.Background(), &fakeKube{}
	one, two := leaseOf(k, "db-1"), leaseOf(k, "db-2")
	must(t, one.acquire(ctx, 3))
	if err := two.acquire(ctx, 3); err == nil {
		t.Error("taken over in the same epoch")
	}
	if err := two.acquire(ctx, 2); err == nil {
		t.Error("taken over by a lower epoch")
	}
	if held, _ := two.held(); held != 0 {
		t.Error("believes that it holds what it did not get")
	}
	must(t, two.acquire(ctx, 4))
	if who, at := k.holder(); who != "db-2" || at != 4 {
		t.Errorf("%s holds it at epoch %d", who, at)
	}
	if err := one.renew(ctx, 3); err == nil {
		t.Error("the former holder has renewed it")
	}
	if held, _ := one.held(); held != 0 {
		t.Error("the former holder believes that it still holds it")
	}
	if n := *k.lease.Spec.LeaseTransitions; n != 1 {
		t.Errorf("%d transitions are counted", n)
	}
}

func TestALeaseIsReleasedByItsHolderOnly(t *testing.T) {
	ctx, k := context.Background(), &fakeKube{}
	one, two := leaseOf(k, "db-1"), leaseOf(k, "db-2")
	must(t, one.acquire(ctx, 1))
	must(t, two.acquire(ctx, 2))
	must(t, one.release(ctx))
	if who, _ := k.holder(); who != "db-2" {
		t.Errorf("%q holds it after the former holder's release", who)
	}
	must(t, two.release(ctx))
	if who, _ := k.holder(); who != "" {
		t.Error("it was not released")
	}
	must(t, two.release(ctx))
}

func TestARestartedHolderTakesItsOwnLeaseAgain(t *testing.T) {
	ctx, k := context.Background(), &fakeKube{}
	must(t, leaseOf(k, "db-1").acquire(ctx, 5))
	again := leaseOf(k, "db-1")
	must(t, again.acquire(ctx, 5))
	must(t, again.renew(ctx, 5))
	if n := *k.lease.Spec.LeaseTransitions; n != 0 {
		t.Errorf("%d transitions are counted for one holder", n)
	}
}

func TestADeletedLeaseIsMadeAnewByItsHolder(t *testing.T) {
	ctx, k := context.Background(), &fakeKube{}
	one := leaseOf(k, "db-1")
	must(t, one.acquire(ctx, 5))
	k.lease = nil
	must(t, one.renew(ctx, 5))
	if who, at := k.holder(); who != "db-1" || at != 5 {
		t.Errorf("%q holds it at epoch %d", who, at)
	}
}
