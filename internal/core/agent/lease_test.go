package agent

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

func TestALeaseIsRenewedByWhoWritesAndGivenBackByWhoCannot(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*Facts)
		duty   LeaseDuty
	}{
		"it takes writes, and the lease is old": {func(*Facts) {}, RenewLease},
		"the lease is young": {func(f *Facts) { f.LeaseRenewed = now.Add(-time.Second) },
			LeaveLease},
		"mysqld hangs": {func(f *Facts) { f.Mysqld.AnsweredAt = now.Add(-3 * time.Second) },
			LeaveLease},
		"its volume completes no write":    {func(f *Facts) { f.Mysqld.DiskStalled = true }, LeaveLease},
		"mysqld has ended":                 {func(f *Facts) { f.Mysqld.Up = false }, LeaveLease},
		"the lease is switched off":        {func(f *Facts) { f.Cluster.Lease = false }, LeaveLease},
		"it holds one of an earlier epoch": {func(f *Facts) { f.LeaseEpoch = 2 }, LeaveLease},
		"another is promoted, and it is closed": {func(f *Facts) {
			f.Cluster.Promotion.Instance, f.WritableEpoch,
				f.Mysqld.MayWrite = "db-2", 0, false
		}, ReleaseLease},
		"another is promoted, and it may write": {func(f *Facts) { f.Cluster.Promotion.Instance = "db-2" },
			RenewLease},
		"it is closed, and is to open again": {func(f *Facts) {
			f.WritableEpoch, f.Mysqld.MayWrite = 0,
				false
		}, LeaveLease},
		"its Pod is stopped, and so is mysqld": {func(f *Facts) {
			f.WritableEpoch, f.Mysqld, f.TerminatingSince = 0,
				Mysqld{}, now
		}, ReleaseLease},
		"it is fenced, and mysqld is stopped": {func(f *Facts) {
			f.WritableEpoch, f.Mysqld, f.WasFenced = 0,
				Mysqld{}, true
		}, ReleaseLease},
		"it crashed, and may be started again": {func(f *Facts) {
			f.WritableEpoch, f.Mysqld = 0,
				Mysqld{}
		}, LeaveLease},
		"it crashed, and holds no lease at all": {func(f *Facts) {
			f.WritableEpoch, f.Mysqld, f.LeaseEpoch = 0,
				Mysqld{}, 0
		}, LeaveLease},
		"nothing is known of the Cluster so far": {func(f *Facts) { f.Cluster = nil }, LeaveLease},
	} {
		f := &Facts{Now: now, Me: "db-1", PodUID: "pod-1", Node: "node-1", Locked: true, Data: core.DataPopulated,
			WritableEpoch: 3, LeaseEpoch: 3, LeaseRenewed: now.Add(-6 * time.Second),
			Mysqld: Mysqld{Up: true, Accepted: true, Answers: true, AnsweredAt: now.Add(-time.Second), MayWrite: true},
			Cluster: &Cluster{Lease: true, Epoch: 3, Promotion: &core.Promotion{Epoch: 3, Instance: "db-1",
				PodUID: "pod-1", Node: "node-1"}, CurrentPrimary: "db-1"}}
		c.change(f)
		if got := f.LeaseDuty(); got != c.duty {
			t.Errorf("%s: the duty is %d and not %d", name, got, c.duty)
		}
	}
}

func TestALeaseIsTakenFromNobodyWhoHoldsItAtThatEpoch(t *testing.T) {
	for _, c := range []struct {
		epoch   int64
		holder  string
		at      int64
		refused bool
	}{{3, "", 0, false}, {3, "", 3, false}, {3, "db-1", 3, false}, {3, "db-1", 2, false}, {3, "db-2", 2, false},
		{3, "db-2", 3, true}, {3, "db-2", 4, true}, {3, "", 4, true}, {3, "db-1", 4, true}} {
		if why := LeaseRefused("db-1", c.epoch, c.holder, c.at); (why != "") != c.refused {
			t.Errorf("held by %q at %d, for %d: %q", c.holder, c.at, c.epoch, why)
		}
	}
	if IsLeaseLost("db-1", 3, "db-1", 3) || !IsLeaseLost("db-1", 3, "db-2", 3) || !IsLeaseLost("db-1", 3, "db-1", 4) ||
		!IsLeaseLost("db-1", 3, "", 3) || !IsLeaseLost("db-1", 3, "", 4) || IsLeaseLost("db-1", 3, "", 0) {
		t.Error("whose the record is, is not told right")
	}
}

func TestAPromotionIsConfirmedAnewAfterTheLeaseWasOff(t *testing.T) {
	on, off := &Cluster{Lease: true}, &Cluster{}
	if off.keepsConfirmed(on) {
		t.Error("with the lease off that was on, an instance that may be told of the past asks nobody")
	}
	if !on.keepsConfirmed(off) || !on.keepsConfirmed(on) || !off.keepsConfirmed(off) || !off.keepsConfirmed(nil) {
		t.Error("it asks again although nothing holds it back less than before")
	}
}

// Whoever waits for as long as it is told looks in the very moment in which it has to isolate itself.
func TestNobodyHasToIsolateItselfBeforeItLooks(t *testing.T) {
	renewed := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	f := &Facts{Me: "db-1", Mysqld: Mysqld{Up: true, MayWrite: true}, WritableEpoch: 3, LeaseEpoch: 3,
		LeaseRenewed: renewed, Cluster: &Cluster{Lease: true, Instances: 3, Members: []string{"db-1", "db-2", "db-3"}}}
	for f.Now = renewed; !f.MustIsolateItself(); {
		f.Now = f.Now.Add(f.UntilIsolationLook())
	}
	if late := f.Now.Sub(renewed.Add(core.LeaseGrace)); late != 1 {
		t.Errorf("it looks %s after its lease has run out", late)
	}
	for about, wait := range map[string]struct {
		change func(*Facts)
		want   time.Duration
	}{
		"without a lease that counts": {func(*Facts) {}, core.IsolationLook},
		"it holds none":               {func(f *Facts) { f.LeaseEpoch, f.LeaseRenewed = 0, f.Now }, core.IsolationLook},
		"it takes no writes":          {func(f *Facts) { f.Mysqld.MayWrite = false }, core.IsolationRest},
	} {
		now := *f
		wait.change(&now)
		if got := now.UntilIsolationLook(); got != wait.want {
			t.Errorf("%s: it looks again after %s, want %s", about, got, wait.want)
		}
	}
}

// TestOneThatIsBeingOpenedIsolatesItself holds that the end of its opening is not waited for: mysqld takes writes
// before that, and the last of the statements that open it may hang while the lease runs out.
func TestOneThatIsBeingOpenedIsolatesItself(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	p := &core.Promotion{Epoch: 3, Instance: "db-1", PodUID: "pod-1"}
	f := &Facts{Now: now, Me: "db-1", PodUID: "pod-1", Locked: true, Mysqld: Mysqld{Up: true, MayWrite: true},
		LeaseEpoch: 3, LeaseRenewed: now.Add(-core.LeaseGrace),
		Cluster: &Cluster{Epoch: 3, Promotion: p, Lease: true, Instances: 3}}
	if f.MustIsolateItself() {
		t.Error("it isolates itself while its lease counts")
	}
	if f.Now = now.Add(1); !f.MustIsolateItself() {
		t.Error("it does not isolate itself, and takes writes")
	}
	if f.Cluster.Promotion = nil; f.MustIsolateItself() {
		t.Error("a replica that somebody opened isolates itself, and does not say that it was not promoted")
	}
}

// TestAnOlderAnswerAboutTheLeaseChangesNothing holds that what is noted for a later epoch stays.
func TestAnOlderAnswerAboutTheLeaseChangesNothing(t *testing.T) {
	for _, c := range []struct {
		noted, epoch int64
		takes, ends  bool
	}{{0, 4, true, true}, {4, 4, true, true}, {4, 5, true, true}, {5, 4, false, false}} {
		takes, ends := TakesLease(c.noted, c.epoch), EndsLease(c.noted, c.epoch)
		if takes != c.takes || ends != c.ends {
			t.Errorf("%+v: takes %t, ends %t", c, takes, ends)
		}
	}
}

// TestAPromiseThatSaysNoMoreIsKeptSinceTheFormer holds that only one that says more begins anew.
func TestAPromiseThatSaysNoMoreIsKeptSinceTheFormer(t *testing.T) {
	if !BeginsToWithhold(0, 4) || !BeginsToWithhold(4, 5) || BeginsToWithhold(4, 4) || BeginsToWithhold(5, 4) {
		t.Error("a promise begins when it says more than the one that is kept, and only then")
	}
}
