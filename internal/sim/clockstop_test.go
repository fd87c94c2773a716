package sim

import (
	"fmt"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// vmPause is longer than it takes to replace a primary by its lease.
const vmPause = 30 * time.Second

// awake is how long a primary may take writes after its machine and its clock went on, when
// nobody can tell it that it was replaced: until its lease is LeaseGrace old by its own
// clock, or the last vouch VouchLife, and it has isolated itself.
const awake = core.LeaseGrace + core.VouchLife + core.IsolationLimit

// nobodyTookOver while the machine stood still, so that nothing can be learned from a run.
const nobodyTookOver = "nobody took over"

// pauseVM stops the primary's machine together with its monotonic clock, as a hypervisor
// does, until another takes writes. isCut: the network is away when it goes on. It returns
// how long the former primary took writes afterwards, and what went wrong; played is false
// where the seed's world is none for it.
func pauseVM(seed uint64, mode core.DurabilityMode, mut *mutation,
	isCut bool) (wrote time.Duration, wrong string, played bool) {
	w := newWorld(seed, mut, nil, &story{})
	c := &w.conf
	if c.instances != 3 || c.durability.Mode != mode || c.durability.Min != 0 || !c.lease || c.delay != 0 ||
		len(c.policy.Preferred) > 0 {
		return 0, "", false
	}
	w.bursts = []burst{{0, 10 * time.Hour}}
	w.runUntil(100 * time.Second)
	if w.failure != nil || !w.isHealthy() {
		return 0, "", false
	}
	p := *w.api.cluster().status.Promotion
	machine, former := w.nodeOf(p.Node).machine, w.managerOf(p.Instance)
	w.machines[machine].clock.stop(w.now, w.now+vmPause)
	w.pause(machine, vmPause)
	resumed := w.now + vmPause
	w.runUntil(resumed - time.Millisecond)
	if w.api.cluster().status.Promotion.Instance == p.Instance {
		return 0, nobodyTookOver, true
	}
	if isCut { // but its clients are on its side
		for i := range w.machines {
			if i != machine && i != clientMachine {
				w.cutBoth(machine, i, time.Hour)
			}
		}
	}
	for w.now < resumed+time.Minute && former.writable == p.Epoch && !former.dead {
		w.runUntil(w.now + 10*time.Millisecond)
		if w.failure != nil && wrong == "" {
			wrong = fmt.Sprintf("%s after %s went on: %v", w.now-resumed, p.Instance, w.failure)
		}
		w.failure = nil // a failure ends a run; how long it takes writes is to be seen
	}
	wrote = w.now - resumed
	w.runUntil(resumed + time.Minute)
	if w.failure != nil && wrong == "" {
		wrong = fmt.Sprintf("%s after %s went on: %v", w.now-resumed, p.Instance, w.failure)
	}
	return wrote, wrong, true
}

// A virtual machine that is stopped takes its monotonic clock with it, so that a primary
// wakes up with a lease that looks fresh. Under quorum nobody acknowledges what it takes.
// Without, it takes writes until it is told, or for as long as its lease looks fresh.
func TestAPrimaryWhoseClockStoodStillIsToldOrFencesItself(t *testing.T) {
	deaf := mutation{NoSelfFencing: true, Facts: func(f *agent.Facts) { f.LeaseRenewed = f.Now }}
	for _, test := range []struct {
		name    string
		mode    core.DurabilityMode
		isCut   bool
		mut     mutation
		atMost  time.Duration
		isFound bool
	}{
		{"quorum, and it is told", core.DurabilityQuorum, false, mutation{}, time.Second, false},
		{"quorum, and it is cut off", core.DurabilityQuorum, true, mutation{}, awake, false},
		{"asynchronous, and it is told", core.DurabilityAsync, false, mutation{}, time.Second, false},
		{"asynchronous, and it is cut off", core.DurabilityAsync, true, mutation{}, awake, false},
		{"it does not isolate itself", core.DurabilityAsync, true, deaf, awake, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var longest time.Duration
			played, found := 0, false
			for seed := uint64(0); played < 3; seed++ {
				wrote, wrong, plays := pauseVM(seed, test.mode, &test.mut, test.isCut)
				if !plays {
					continue
				}
				played++
				longest = max(longest, wrote)
				if wrong == nobodyTookOver {
					t.Fatalf("seed %d: %s", seed, wrong)
				}
				// Without quorum what is acknowledged meanwhile may be lost; that is bounded,
				// and all that can be promised.
				isWrong := wrote > test.atMost || wrong != "" && test.mode == core.DurabilityQuorum
				if found = found || isWrong; isWrong && !test.isFound {
					t.Errorf("seed %d: it took writes for %s; %s", seed, wrote, wrong)
				}
			}
			if test.isFound && !found {
				t.Error("nothing is found: the bound holds nobody")
			}
			t.Logf("it took writes for %s at most", longest)
		})
	}
}
