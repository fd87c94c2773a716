package async

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// TestSimulation runs clusters through faults at random moments. After every step
// the invariants hold in the model's truth, not only in what the operator knows;
// when the faults stop, the cluster is healthy again within bounded time. A seed
// that fails prints its story. (The model is small; internal/sim is the real one.)
func TestSimulation(t *testing.T) {
	seeds := 1000
	if testing.Short() {
		seeds = 200
	}
	if n, err := strconv.Atoi(os.Getenv("SEEDS")); err == nil {
		seeds = n
	}
	seen := map[string]int{}
	for seed := range seeds {
		s := newSim(uint64(seed), seen)
		if err := s.play(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, short(s.story.String()))
		}
	}
	for _, must := range []string{"Failover", "Switchover", string(core.ProofManagerFenced),
		string(core.ProofPodTerminated), string(core.ProofLeaseExpired),
		string(core.StepReturn), string(core.StepElect), string(core.MysqldDown), string(core.PrimaryHung),
		string(core.PodGone)} {
		if seen[must] == 0 {
			t.Errorf("no seed came to %s: %v", must, seen)
		}
	}
}

type sim struct {
	*world
	rnd   *rand.Rand
	story strings.Builder
	seen  map[string]int
	acked gtid.Set
	next  int
	// powered-off instances, whose Node is gone until the faults stop.
	off map[string]bool
}

func newSim(seed uint64, seen map[string]int) *sim {
	rnd := rand.New(rand.NewPCG(seed, 0))
	modes := []core.DurabilityMode{core.DurabilityAsync, core.DurabilityPreferred, core.DurabilityRequired,
		core.DurabilityQuorum}
	sizes := []int{1, 2, 3, 3, 3, 5}
	w := newWorld(core.Cluster{Wanted: sizes[rnd.IntN(len(sizes))],
		Durability:      core.Durability{Mode: modes[rnd.IntN(len(modes))]},
		SwitchoverLimit: 20 * time.Second, SwitchoverPause: time.Duration(rnd.IntN(3)) * 3 * time.Second,
		FailoverDelay: time.Duration(rnd.IntN(2)) * 5 * time.Second})
	s := &sim{world: w, rnd: rnd, seen: seen, next: 2, off: map[string]bool{}}
	fmt.Fprintf(&s.story, "%d instances, %s, delay %s\n", w.cluster.Wanted, w.cluster.Durability.Mode,
		w.cluster.FailoverDelay)
	return s
}

func (s *sim) tell(format string, a ...any) { fmt.Fprintf(&s.story, format+"\n", a...) }

func (s *sim) play() error {
	if err := s.untilHealthy(); err != nil {
		return fmt.Errorf("at first: %w", err)
	}
	for range 60 {
		if s.rnd.IntN(3) == 0 {
			s.fault()
		}
		s.write()
		if err := s.pass(); err != nil {
			return err
		}
	}
	s.heal()
	if err := s.untilHealthy(); err != nil {
		return err
	}
	return s.isSilent()
}

// isSilent: in a steady state nothing is written, done or told, whatever is heard.
func (s *sim) isSilent() error {
	for range 3 {
		s.now = s.now.Add(time.Second)
		s.hearAll()
		o := s.observe()
		plan := Decide(o)
		if !reflect.DeepEqual(plan, core.Plan{Status: o.Cluster.Status}) {
			s.tell("%s", printPlan(o, plan))
			return fmt.Errorf("a steady state is not silent")
		}
	}
	return nil
}

// pass: the operator decides and acts, the managers act, time passes. At times the
// operator dies between writing the status and carrying out the effects.
func (s *sim) pass() error {
	if s.rnd.IntN(3) == 0 {
		s.hearAll()
	}
	o := s.observe()
	plan := Decide(o)
	if err := checkInvariants(o, plan); err != nil {
		s.tell("%s", printPlan(o, plan))
		return err
	}
	s.note(o, plan)
	s.cluster.Status, s.memory = plan.Status, plan.Carried
	if s.rnd.IntN(15) == 0 {
		s.tell("the operator dies before it acts")
		s.restartOperator()
	} else {
		for _, e := range plan.Effects {
			s.carryOut(e)
		}
	}
	if s.rnd.IntN(3) > 0 {
		s.manage()
	}
	s.now = s.now.Add(time.Duration(1+s.rnd.IntN(400)) * time.Millisecond)
	return s.check()
}

func (s *sim) note(o core.Observation, plan core.Plan) {
	for _, ev := range plan.Events {
		s.tell("    %s", printEvent(ev))
	}
	for _, e := range plan.Effects {
		if _, ok := e.(core.LabelPod); !ok {
			s.tell("    - %s", e)
		}
	}
	st := plan.Status
	s.seen[string(st.Diagnosis)]++
	if st.Operation != nil {
		s.seen[string(st.Operation.Kind)]++
		s.seen[string(st.Operation.Step)]++
	}
	if _, p, isNew := granted(o, plan); isNew {
		s.seen[string(p.Proof)]++
	}
}

// check: the truth.
func (s *sim) check() error {
	var writers []string
	for _, in := range s.insts {
		if in.truth.WritableEpoch != 0 && in.truth.State == core.Running && in.pod.Exists && !in.pod.Terminated &&
			s.canAcknowledge(in) {
			writers = append(writers, fmt.Sprintf("%s in epoch %d", in.name, in.truth.WritableEpoch))
			if in.truth.WritableEpoch == s.cluster.Status.Epoch && s.isLossless() &&
				!in.truth.Server.Executed.Contains(s.acked) {
				return fmt.Errorf("I2: %s is primary and lacks acknowledged %s", in.name,
					s.acked.Subtract(in.truth.Server.Executed))
			}
		}
	}
	if len(writers) > 1 {
		return fmt.Errorf("I1: %s are writable", strings.Join(writers, " and "))
	}
	return nil
}

// canAcknowledge: a commit that waits for replicas which are not there is none.
func (s *sim) canAcknowledge(in *inst) bool {
	return !in.truth.Server.SemiSync.Starves(len(s.receivers(in)))
}

func (s *sim) receivers(in *inst) []*inst {
	var out []*inst
	for _, r := range s.insts {
		if rs := r.truth.Server; in.runs() && r.runs() && r != in && rs.Replication != nil &&
			rs.Replication.IORunning && rs.Replication.SourceHost == in.name &&
			(rs.SemiSync.ReplicaEnabled || !s.isLossless()) {
			out = append(out, r)
		}
	}
	return out
}

func (s *sim) isLossless() bool { return s.cluster.Durability.Mode.IsOnReplicas() }

// write: one transaction on whoever is writable, received by as many replicas as
// it waits for, perhaps by more; with too few, it is never acknowledged.
func (s *sim) write() {
	for _, in := range s.insts {
		if in.truth.WritableEpoch == 0 || in.truth.State != core.Running {
			continue
		}
		receivers := s.receivers(in)
		need := 0
		if in.truth.Server.SemiSync.SourceEnabled {
			need = in.truth.Server.SemiSync.Acks
		}
		if len(receivers) < need {
			continue
		}
		set := gtid.MustParse(fmt.Sprintf("%s:%d", in.truth.Server.UUID, s.next))
		s.next++
		s.rnd.Shuffle(len(receivers), func(i, j int) { receivers[i], receivers[j] = receivers[j], receivers[i] })
		in.truth.Server.Executed = in.truth.Server.Executed.Union(set)
		for i, r := range receivers {
			if i < need || s.rnd.IntN(2) == 0 { // all before it comes first
				rep := r.truth.Server.Replication
				rep.Retrieved = rep.Retrieved.Union(in.truth.Server.Executed.Subtract(r.truth.Server.Executed))
			}
		}
		s.acked = s.acked.Union(set)
	}
}

// fault: something happens to somebody.
func (s *sim) fault() {
	in := s.insts[s.rnd.IntN(len(s.insts))]
	if p := s.cluster.Status.Promotion; p != nil && s.rnd.IntN(2) == 0 && s.inst(p.Instance) != nil {
		in = s.inst(p.Instance)
	}
	faults := []struct {
		name string
		do   func(*inst)
	}{
		{"mysqld crashes", s.crash}, {"mysqld hangs", s.hang}, {"is cut off", s.cutOff}, {"is reached again", s.reach},
		{"its Pod ends", s.terminate}, {"its Pod is deleted", s.world.endPod}, {"its node is powered off", s.powerOff},
		{"is asked for as primary", func(in *inst) { s.cluster.Status.TargetPrimary = in.name }},
		{"its manager is slow", func(in *inst) { s.slow[in.name] = true }},
		{"its manager is quick again", func(in *inst) { delete(s.slow, in.name) }},
		{"its Pod is out of date", func(in *inst) { in.pod.Current = false }},
		{"its Pod is to hand over", func(in *inst) { in.pod.Terminating, in.truth.Terminating = true, true }},
		{"sees 12 seconds pass", func(*inst) { s.advance(12 * time.Second) }},
		{"sees the operator restart", func(*inst) { s.restartOperator() }},
		{"sees the cluster grow", func(*inst) { s.cluster.Wanted = min(s.cluster.Wanted+1, 5) }},
		{"sees the cluster shrink", func(*inst) { s.cluster.Wanted = max(s.cluster.Wanted-1, 1) }},
	}
	f := faults[s.rnd.IntN(len(faults))]
	s.tell("%s %s", in.name, f.name)
	f.do(in)
	s.hear(in)
}

func (s *sim) crash(in *inst) {
	if in.truth.State == core.Running {
		in.truth.State, in.truth.WritableEpoch = core.Stopped, 0
	}
}

func (s *sim) hang(in *inst) {
	if in.truth.State == core.Running {
		in.truth.State = core.Hung
	}
}

func (s *sim) cutOff(in *inst) {
	in.cut = true
	s.lose(in)
}

func (s *sim) reach(in *inst) {
	if !s.off[in.name] {
		in.lost, in.cut = false, false
	}
}

func (s *sim) terminate(in *inst) {
	if in.pod.Exists && !in.cut {
		in.pod.Terminated = true
		in.heard.Lose()
		in.truth.WritableEpoch = 0
	}
}

func (s *sim) powerOff(in *inst) {
	s.off[in.name] = true
	in.node.OutOfService = true
	in.truth.WritableEpoch = 0
	if in.truth.State == core.Running {
		in.truth.State = core.Stopped
	}
	s.cutOff(in)
}

// heal ends all faults; what needs a human is done by one.
func (s *sim) heal() {
	s.tell("the faults stop")
	s.slow = map[string]bool{}
	for _, in := range s.insts {
		if s.off[in.name] || in.pod.Terminating {
			s.endPod(in)
		}
		in.node = core.Node{Exists: true}
		in.lost, in.cut = false, false
		if in.truth.State == core.Hung {
			in.truth.State, in.truth.WritableEpoch = core.Stopped, 0
		}
	}
	s.off = map[string]bool{}
	s.hearAll()
}

// reclone is what a human does about an instance that has diverged.
func (s *sim) reclone() {
	for _, name := range s.cluster.Status.Diverged {
		if in := s.inst(name); in != nil && in.volume.Exists {
			s.tell("a human deletes %s's Pod and volume", name)
			in.volume.Deleting = true
			s.endPod(in)
		}
	}
}

func (s *sim) untilHealthy() error {
	quiet := 0
	for pass := range 300 {
		o := s.observe()
		plan := Decide(o)
		if err := checkInvariants(o, plan); err != nil {
			s.tell("%s", printPlan(o, plan))
			return err
		}
		s.note(o, plan)
		same := plan.Status.Reason == s.cluster.Status.Reason
		s.cluster.Status, s.memory = plan.Status, plan.Carried
		for _, e := range plan.Effects {
			s.carryOut(e)
		}
		if plan.Recheck < time.Second {
			s.now = s.now.Add(plan.Recheck)
		}
		if moved := s.manage(); !moved && len(plan.Effects) == 0 && same {
			quiet++
			s.now = s.now.Add(time.Second)
			s.hearAll()
		} else {
			quiet = 0
		}
		if err := s.check(); err != nil {
			return err
		}
		if s.cluster.Status.Phase == core.PhaseHealthy && quiet > 2 {
			return nil
		}
		if quiet > 5 && pass%10 == 9 {
			s.reclone()
		}
	}
	s.tell("%s", printPlan(s.observe(), Decide(s.observe())))
	return fmt.Errorf("not healthy within 300 passes")
}
