package core_test

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

var three = time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return three.Add(-d) }

// failing is a status before a failover ends; the last write was possible three seconds ago.
func failing() *core.Status {
	return &core.Status{CurrentPrimary: "c-1", Epoch: 4, Diagnosis: core.PrimaryPromoting,
		FailingSince: ago(3 * time.Second),
		Operation: &core.Operation{Kind: core.OperationFailover, From: "c-1", Reason: "MysqldDown",
			StartedAt: ago(2 * time.Second)}}
}

func TestAnOperationThatEndedIsRemembered(t *testing.T) {
	after := &core.Status{CurrentPrimary: "c-2", Epoch: 5, Diagnosis: core.PrimaryHealthy,
		Promotion: &core.Promotion{Epoch: 5, Instance: "c-2", Proof: core.ProofManagerFenced,
			GrantedAt: ago(time.Second)}}
	got := core.Remember(failing(), after, three)
	want := core.PastOperation{Kind: core.OperationFailover, Reason: "MysqldDown", From: "c-1", Primary: "c-2",
		Epoch: 5, Proof: core.ProofManagerFenced,
		StartedAt: ago(3 * time.Second), StoppedAt: ago(3 * time.Second), EndedAt: three}
	if len(got) != 1 || got[0] != want {
		t.Errorf("%+v", got)
	}
}

func TestASwitchoverThatBecameAFailoverHasNoPrimary(t *testing.T) {
	before := &core.Status{CurrentPrimary: "c-1", Epoch: 4, Diagnosis: core.PrimaryDemoted,
		Operation: &core.Operation{Kind: core.OperationSwitchover, From: "c-1", To: "c-2", Reason: "Requested",
			StartedAt: ago(2 * time.Second), PausedAt: ago(time.Second)}}
	after := failing()
	after.Diagnosis, after.Operation.StartedAt = core.MysqldDown, three
	got := core.Remember(before, after, three)
	if len(got) != 1 || got[0].Kind != core.OperationSwitchover || got[0].Primary != "" || got[0].To != "c-2" ||
		!got[0].StoppedAt.Equal(ago(time.Second)) || got[0].Proof != "" {
		t.Errorf("%+v", got)
	}
}

func TestAnElectionOfAGroupIsAFailover(t *testing.T) {
	before := &core.Status{CurrentPrimary: "c-1", Epoch: 4, Diagnosis: core.GroupElecting,
		FailingSince: ago(6 * time.Second)}
	after := &core.Status{CurrentPrimary: "c-3", Epoch: 5, Diagnosis: core.PrimaryHealthy}
	got := core.Remember(before, after, three)
	want := core.PastOperation{Kind: core.OperationFailover, Reason: "GroupElecting", From: "c-1", To: "c-3",
		Primary: "c-3", Epoch: 5,
		StartedAt: ago(6 * time.Second), StoppedAt: ago(6 * time.Second), EndedAt: three}
	if len(got) != 1 || got[0] != want {
		t.Errorf("%+v", got)
	}
}

func TestOnlyTheLastTenAreRememberedAndNothingTwice(t *testing.T) {
	s := &core.Status{CurrentPrimary: "c-1", Diagnosis: core.PrimaryHealthy}
	for n := range 12 {
		before := *s
		before.Operation = &core.Operation{Kind: core.OperationSwitchover,
			StartedAt: three.Add(time.Duration(n) * time.Minute)}
		s.Past = core.Remember(&before, s, three.Add(time.Duration(n)*time.Minute+time.Second))
	}
	if len(s.Past) != 10 || !s.Past[9].StartedAt.Equal(three.Add(11*time.Minute)) ||
		!s.Past[0].StartedAt.Equal(three.Add(2*time.Minute)) {
		t.Errorf("%d, from %s to %s", len(s.Past), s.Past[0].StartedAt, s.Past[len(s.Past)-1].StartedAt)
	}
	if again := core.Remember(s, s, three); len(again) != 10 {
		t.Errorf("nothing ended, and there are %d", len(again))
	}
	going := failing()
	if got := core.Remember(going, going, three); len(got) != 0 {
		t.Errorf("it has not ended: %+v", got)
	}
	if got := core.Remember(&core.Status{}, &core.Status{CurrentPrimary: "c-1", Diagnosis: core.PrimaryHealthy},
		three); len(got) != 0 {
		t.Errorf("the first primary replaces nobody: %+v", got)
	}
}
