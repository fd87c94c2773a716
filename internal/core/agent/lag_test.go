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
	}{{0, false}, {9, false}, {10, false}, {10.5, true}, {9, true}, {5.1, true}, {5, false}, {9, false}, {60, true}, {0, false}} {
		lags = Lags(lags, &core.Replication{LagSeconds: step.seconds}, 10*time.Second)
		if lags != step.want {
			t.Errorf("at %v s it lags too much: %t, want %t", step.seconds, lags, step.want)
		}
	}
	if Lags(true, &core.Replication{LagSeconds: 1e6}, 0) {
		t.Error("a replica lags too much without a bound")
	}
	if Lags(true, nil, time.Second) {
		t.Error("a primary lags")
	}
}
