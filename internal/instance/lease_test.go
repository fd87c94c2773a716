package instance

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
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
	must(t, one.release(ctx, 1))
	if who, _ := k.holder(); who != "db-2" {
		t.Errorf("%q holds it after the former holder's release", who)
	}
	must(t, two.release(ctx, 2))
	if who, at := k.holder(); !agent.IsLeaseFree(who, at) {
		t.Errorf("released, it is of %q at epoch %d", who, at)
	}
	must(t, two.release(ctx, 2))
}

// meanwhileKube has something done before it answers the next question for the Lease.
type meanwhileKube struct {
	*fakeKube
	first func()
}

func (k *meanwhileKube) GetLease(ctx context.Context) (*coordination.Lease, error) {
	if do := k.first; do != nil {
		k.first = nil
		do()
	}
	return k.fakeKube.GetLease(ctx)
}

// A former primary gives the lease back, or renews it, beside its worker, and is promoted again
// meanwhile: the worker takes the lease for the next epoch, and it stays taken.
func TestWhatIsAskedForAFormerEpochLeavesTheLeaseOfTheNext(t *testing.T) {
	for what, ask := range map[string]func(l *lease) error{
		"release": func(l *lease) error { return l.release(t.Context(), 1) },
		"renewal": func(l *lease) error { return l.renew(t.Context(), 1) },
	} {
		k := &meanwhileKube{fakeKube: &fakeKube{}}
		l := &lease{kube: k, me: "db-1"}
		must(t, l.acquire(t.Context(), 1))
		k.first = func() { must(t, l.acquire(t.Context(), 2)) }
		_ = ask(l)
		epoch, _ := l.held()
		if who, at := k.holder(); who != "db-1" || at != 2 || epoch != 2 {
			t.Errorf("%s: the record is of %q at epoch %d, and it is held at epoch %d", what, who, at, epoch)
		}
	}
}

// An answer that comes late is of its own epoch.
func TestALateRenewalDoesNotTakeTheLeaseBackToItsEpoch(t *testing.T) {
	l := &lease{}
	l.hold(2, time.Now())
	l.hold(1, time.Now())
	if epoch, _ := l.held(); epoch != 2 {
		t.Errorf("it is held at epoch %d", epoch)
	}
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

// primaryOf7 is what a leaseKeeper knows of its instance: a primary of epoch 7 whose mysqld answers, and which
// has not renewed its lease for as long as it should not.
type primaryOf7 struct {
	leased
	record *lease
}

func (p primaryOf7) facts() *agent.Facts {
	epoch, _ := p.record.held()
	now := time.Now()
	return &agent.Facts{Now: now, LeaseEpoch: epoch, LeaseRenewed: now.Add(-core.LeaseRenewal), WritableEpoch: 7,
		Cluster: &agent.Cluster{Epoch: 7, Instances: 3, Lease: true},
		Mysqld:  agent.Mysqld{Up: true, MayWrite: true, AnsweredAt: now}}
}

// A keeper who finds the record to be another's has it looked at once whether its primary must isolate
// itself. Whoever renews it does not, nor does whoever is told nothing: the lease counts until it runs out.
func TestAKeeperWhoseLeaseIsAnothersSaysSo(t *testing.T) {
	for what, happens := range map[string]func(k *fakeKube){
		"renewed":   func(*fakeKube) {},
		"unheard":   func(k *fakeKube) { k.setDown(true) },
		"another's": func(k *fakeKube) { must(t, leaseOf(k, "db-2").acquire(t.Context(), 8)) },
	} {
		k, told := &fakeKube{}, 0
		record := leaseOf(k, "db-1")
		must(t, record.acquire(t.Context(), 7))
		keeper := &leaseKeeper{me: "db-1", log: slog.New(slog.DiscardHandler), by: primaryOf7{record: record},
			record: func() *lease { return record }, gone: func() { told++ }}
		happens(k)
		err := keeper.tendLease(t.Context())
		if isLost := what == "another's"; (err == nil) != (what == "renewed") || told > 0 != isLost {
			t.Errorf("%s: it says %v, and was told %d times to isolate itself", what, err, told)
		}
	}
}
