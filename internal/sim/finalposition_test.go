package sim

import (
	"fmt"
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// handOver plays a planned switchover under load, while a second operator is at work and
// the replicas receive late, and tells what went wrong. It returns false where the seed's
// world is none for it.
func handOver(seed uint64, mut *mutation) (string, bool) {
	w := newWorld(seed, mut, nil, &story{})
	if w.conf.instances != 3 || len(w.conf.policy.Preferred) > 0 || w.conf.switchover == 5*time.Second {
		return "", false
	}
	w.bursts = []burst{{0, 10 * time.Hour}}
	w.runUntil(60 * time.Second)
	if w.failure != nil || !w.isHealthy() {
		return "", false
	}
	p := *w.api.cluster().status.Promotion
	to := clusterName + "-2"
	if p.Instance == to {
		to = clusterName + "-3"
	}
	for _, replica := range w.api.cluster().status.InstanceNames {
		w.link(w.nodeOf(p.Node).machine, w.nodeOf(w.api.pod(replica).node).machine).slow = 300 * time.Millisecond
	}
	w.runUntil(w.now + 2*time.Second)
	// The first has lost its leadership and does not know it yet.
	w.startOperator(operatorMachine1 + operatorMachine2 - w.ops[0].machine)
	w.runUntil(w.now + 2*time.Second)
	w.api.updateCluster(0, func(c *clusterObject) { c.status.TargetPrimary = to })
	for range 20000 {
		w.runUntil(w.now + time.Millisecond)
		now, s := w.api.cluster().status.Promotion, w.serverOf(p.Instance)
		if now.Epoch == p.Epoch || s == nil {
			continue
		}
		if missing := s.db.executed.Subtract(now.RequiredGTID); !missing.IsEmpty() {
			return fmt.Sprintf("%s need not have %s, which %s holds in the end", now.Instance,
				missing, p.Instance), true
		}
		break
	}
	return "", true
}

// A report that promises may be out before the final position is read. Either the manager
// tells both at once, or the operator asks again after the promise: whoever does neither
// loses what was committed last.
func TestTheFinalPositionIsOneOfAfterThePromise(t *testing.T) {
	asksNobody := func(_ *world, o *core.Observation) {
		in, p := holderIn(o)
		if in == nil {
			return
		}
		if r, known := in.Report.Get(); known && r.NoWritesBelow > p.Epoch {
			in.Report = core.Known(r, o.Now, in.Report.Received())
		}
	}
	for _, test := range []struct {
		name  string
		mut   mutation
		found bool
	}{
		{"both", mutation{}, false},
		{"the manager tells both at once", mutation{Observe: asksNobody}, false},
		{"the operator asks again", mutation{PromiseBeforeFinal: true}, false},
		{"neither", mutation{PromiseBeforeFinal: true, Observe: asksNobody}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			played := 0
			limit := switchovers
			if test.found {
				limit = searched
			}
			for seed := uint64(0); played < limit; seed++ {
				v, plays := handOver(seed, &test.mut)
				if plays {
					played++
				}
				if v == "" {
					continue
				}
				if !test.found {
					t.Fatalf("seed %d: %s", seed, v)
				}
				t.Logf("found by the %dth switchover, seed %d: %s", played, seed, v)
				return
			}
			if test.found {
				t.Errorf("not found within %d switchovers", played)
			}
		})
	}
}

// switchovers is how many switchovers are played, and searched how many until the mistake
// has to be found: few of them are so close.
const (
	switchovers = 60
	searched    = 600
)
