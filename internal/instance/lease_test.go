package instance

import (
	"context"
	"strings"
	"testing"

	coordination "k8s.io/api/coordination/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core/agent"
)

func leaseOf(k *fakeKube, me string) *lease {
	return &lease{kube: k, me: me}
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
	if who, at := k.holder(); !agent.IsLeaseFree(who, at) {
		t.Errorf("released, it is of %q at epoch %d", who, at)
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

func TestADeletedLeaseIsTakenAgainOnceTheOperatorHasMadeIt(t *testing.T) {
	ctx, k := context.Background(), &fakeKube{}
	one := leaseOf(k, "db-1")
	must(t, one.acquire(ctx, 5))
	_, renewed := one.held()
	k.lease, k.noLease = coordination.Lease{}, true
	if err := one.renew(ctx, 5); err == nil {
		t.Error("it has renewed what is not there")
	}
	err := leaseOf(k, "db-2").acquire(ctx, 6)
	if err == nil || !strings.Contains(err.Error(), "the operator makes it first") {
		t.Errorf("taking what is not there: %v", err)
	}
	if held, at := one.held(); held != 5 || at != renewed {
		t.Errorf("it holds epoch %d, renewed at %s, while nobody has taken it", held, at)
	}
	k.noLease = false
	must(t, one.renew(ctx, 5))
	if who, at := k.holder(); who != "db-1" || at != 5 {
		t.Errorf("%q holds it at epoch %d", who, at)
	}
}

func TestALeaseThatWasTakenAwayIsNotRenewed(t *testing.T) {
	ctx, k := context.Background(), &fakeKube{}
	one := leaseOf(k, "db-1")
	must(t, one.acquire(ctx, 5))
	k.lease.Spec.HolderIdentity = nil
	k.lease.Annotations[v1alpha1.AnnotationEpoch] = "6"
	if err := one.renew(ctx, 5); err == nil {
		t.Error("it has renewed what was taken away for epoch 6")
	}
	if held, _ := one.held(); held != 0 {
		t.Error("it believes that it still holds it")
	}
}
