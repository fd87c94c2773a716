package agent

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

func TestALaggingReplicaComesBackAtHalfOfTheBound(t *testing.T) {
	lags := false
	for _, step := range []struct {
		seconds float64
		want    bool
	}{{0, false}, {9, false}, {10, false}, {10.5, true}, {9, true}, {5.1, true}, {5, false}, {9, false},
		{60, true}, {0, false}} {
		lags = Lags(lags, lagging(step.seconds), 10*time.Second)
		if lags != step.want {
			t.Errorf("at %v s it lags too much: %t, want %t", step.seconds, lags, step.want)
		}
	}
	if Lags(true, lagging(1e6), 0) {
		t.Error("a replica lags too much without a bound")
	}
	if Lags(true, &core.Server{}, time.Second) {
		t.Error("a primary lags")
	}
	member := &core.Server{Group: &core.GroupView{State: core.MemberOnline, Role: core.MemberSecondary, LagSeconds: 4}}
	if !Lags(false, member, 3*time.Second) {
		t.Error("a member of a group does not lag, and applies what is 4 s old")
	}
	if member.Group.Role = core.MemberPrimary; Lags(true, member, time.Second) {
		t.Error("the primary of a group lags")
	}
}

func lagging(lag float64) *core.Server {
	return &core.Server{Replication: &core.Replication{LagSeconds: lag}}
}
