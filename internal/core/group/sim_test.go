package group

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// sim plays faults upon a model group, drawn from a seed, and holds what happens
// against the invariants. The group itself is a model: what it does is given; what is
// tried is what the operator does about it.
type sim struct {
	*world
	rng *rand.Rand
	// acked are the transactions that a client was told are committed, by their numbers.
	acked map[int]int
	next  int
	// ordered is a quorum to be forced, after so many passes more.
	ordered *core.ForceMembers
	before  core.Status // of the last decision
	delay   int
	failed  int // times that it has not come about; it will from the third on
	times   int // that a group was made without a human's word
	wrong   string
	refusal core.Reason // of the recovery of a quorum, the last
	missing
	stopped bool // members, by a human
	gone    map[string]bool
	tried   bool // without a human's word, to reboot the group in this outage
	archive *archiving
	story   []string
	rare
}

// rare are faults with dice of their own. Seeds of some classes alone draw them, so that the others are
// played as ever.
type rare struct {
	pageCache
	hanging  hanging
	setBacks setBacks
}

// pageCache is what a loss of power may take: what was received and not applied. Its dice are its own.
type pageCache struct {
	cache *rand.Rand
	// pulling tells, with dice of its own, which images are not pulled at once; nil where all are.
	pulling *rand.Rand
}

func newSim(seed uint64, mut mutation) *sim {
	s := &sim{world: newWorld(3 + 2*int(seed%2)), rng: rand.New(rand.NewPCG(seed, 7)), acked: map[int]int{},
		gone: map[string]bool{}}
	s.cluster.Group.RecoverOutage = seed/2%2 == 0
	s.mut = mut
	s.diligence = func() int { return s.rng.IntN(8) }
	s.rejoins = func() bool { return s.rng.IntN(2) == 0 }
	s.recovers = func() bool { return s.rng.IntN(3) == 0 }
	s.made, s.revives = s.checkMade, s.checkRevived
	s.archive = newArchiving(s, seed)
	s.pageCache = pageCache{cache: rand.New(rand.NewPCG(seed, 53))}
	s.drawHangs(seed)
	s.drawSetBacks(seed)
	if seed%5 == 3 { // the others are played as ever
		s.pulling = rand.New(rand.NewPCG(seed, 59))
		s.pulls = func(string) bool { return s.cluster.Status.Group.WasMade() && s.pulling.IntN(2) == 0 }
	}
	return s
}

// checkMade: somebody makes the group, which may have been ordered long ago.
func (s *sim) checkMade(by *instance, anew bool) {
	if !anew {
		s.times++
	}
	switch {
	case s.hasQuorum():
		s.wrong = "I5: " + by.name + " makes a group beside one that there is"
	case s.times > 1:
		s.wrong = "I5: a group was made by itself a second time, by " + by.name
	case anew:
		s.wrong = s.lacksAcked(by.name)
		s.goesOnFrom(by.name) // what the volumes that are gone held is lost with the group
	}
	by.adopt(by.errant) // the group's own from now on
	by.errant = gtid.Set{}
}

func (s *sim) tellf(format string, args ...any) {
	s.story = append(s.story, fmt.Sprintf(format, args...))
}

// write: a majority of the view accepts a transaction, and each member learns that in its
// own time; when the primary has, it is acknowledged. Its number is the first that the
// primary has not seen.
func (s *sim) write() {
	if s.primary == "" || !s.hasQuorum() || !s.get(s.primary).joined {
		return
	}
	s.catchUp()
	s.next++
	number := len(s.get(s.primary).content) + 1
	for _, name := range s.view {
		if !s.reaches(s.primary, name) || s.get(name).state == core.MemberRecovering || s.rng.IntN(5) == 0 {
			continue
		}
		if name == s.primary && s.get(name).isHung() {
			continue // it sent the transaction, and its commit does not end
		}
		s.get(name).hold(number, s.next)
		if name == s.primary {
			s.acked[number] = s.next
		}
	}
}

// pull has Pods start whose images were not pulled, one of so many.
func (s *sim) pull(oneOf int) {
	for _, in := range s.all {
		if in.pod.NeverStarted && s.pulling.IntN(oneOf) == 0 {
			s.tellf("the Pod of %s starts", in.name)
			in.pod.NeverStarted = false
		}
	}
}

// pass is one pass of the operator; its violation of an invariant is returned.
func (s *sim) pass() string {
	s.outnumber()
	if why := s.hindsight(false); why != "" {
		return why
	}
	o := s.observe()
	s.foresee(&o)
	if s.mut.observe != nil {
		s.mut.observe(&o)
	}
	plan := Decide(o)
	if s.mut.plan != nil {
		s.mut.plan(&o, &plan)
	}
	had, before, primary := s.hasQuorum(), s.cluster.Status, s.primary
	s.cluster.Status, s.memory, s.before, s.past = plan.Status, plan.Carried, before, false
	if before.Group != nil && before.Group.Bootstrapped && !plan.Status.Group.Bootstrapped {
		return "I5: the group is said not to be made any more"
	}
	if why := cmp.Or(s.slandered(before.Diverged), s.saysHung(), s.checkEpoch(before)); why != "" {
		return why
	}
	s.witness(plan)
	for _, e := range plan.Events {
		if strings.Contains(e.Message, "the recovery of the quorum was refused") {
			s.refusal = e.Reason
		}
		s.tellf("  %s: %s", e.Reason, e.Message)
	}
	if why := s.checkOutage(plan); why != "" {
		return why
	}
	for _, e := range plan.Effects {
		s.tellf("- %s", e)
		if why := s.check(e, had, primary); why != "" {
			return why
		}
		if _, forces := e.(core.ForceMembers); !forces {
			s.carryOut(e)
		}
	}
	s.force()
	return cmp.Or(s.letManagersAct(had), s.forgetsGiven())
}

// slandered: an instance is said to have diverged that holds nothing but what the group
// holds, or has accepted.
func (s *sim) slandered(before []string) string {
	if !s.hasQuorum() || s.isPast() { // what one says by a status may be held against an earlier one
		return ""
	}
	for _, name := range s.cluster.Status.Diverged {
		in := s.get(name)
		if slices.Contains(before, name) || in == nil || !in.errant.IsEmpty() ||
			s.cluster.Status.Group.WentOnWithout(name) {
			continue
		}
		if s.heldBy(s.view).Contains(in.holds()) {
			return "I4: " + name + " is said to have diverged, and has not"
		}
	}
	return ""
}

// force carries out what was ordered, some time later, or never: mysqld forces nothing
// while it has the majority, or when it is in no group.
func (s *sim) force() {
	e := s.ordered
	if e == nil {
		return
	}
	if s.delay--; s.delay >= 0 {
		return
	}
	s.ordered = nil
	if s.hasQuorum() || !s.get(e.Instance).joined || s.failed < 2 && s.rng.IntN(4) == 0 {
		s.tellf("nothing is forced")
		s.failed++
		return
	}
	if !s.forceMembers(*e) {
		return
	}
	s.goesOnFrom(e.Instance)
	s.seen = nil
}

// letManagersAct: nothing that the operator wants may cost a group its majority that
// has one. A volume may be lost after it was said, and before it is done.
func (s *sim) letManagersAct(had bool) string {
	s.hanging.excused = false
	s.manage()
	switch {
	case s.wrong != "":
		return s.wrong
	case s.hanging.excused || s.stopped || len(s.gone) > 0:
	case had && !s.hasQuorum() && len(s.cluster.Status.InstanceNames) > 0:
		return "I7: the operator took the group's majority away: " + s.tell()
	}
	s.settle()
	return ""
}

// recoverMembers: who has joined receives what it lacks from one that is online, and ends in
// ERROR when there is none.
func (s *sim) recoverMembers() {
	for _, in := range s.all {
		if in.state != core.MemberRecovering || !in.joined || s.rng.IntN(2) == 0 {
			continue
		}
		in.state = ""
		switch {
		case !s.reaches(in.name, s.primaryOf(in)):
			s.leave(in.name)
			in.state = core.MemberError
		case in.stale == nil:
			s.learn([]string{in.name})
		}
	}
}

// catchUp: members that have the majority receive from each other.
func (s *sim) catchUp() {
	if s.primary == "" || !s.hasQuorum() {
		return
	}
	s.learn(slices.DeleteFunc(slices.Clone(s.view), func(name string) bool { return !s.reaches(name, s.primary) }))
}

func play(seed uint64, mut mutation) (violation string, story []string) {
	violation, story = playAll(seed, mut)
	if violation == theirs {
		return "", append(story, theirs)
	}
	return violation, story
}

func playAll(seed uint64, mut mutation) (violation string, story []string) {
	s := newSim(seed, mut)
	step := func(passes int) string {
		for range passes {
			if s.rng.IntN(3) > 0 {
				s.catchUp()
			}
			s.recoverMembers()
			if why := s.pass(); why != "" {
				return why
			}
			if why := cmp.Or(s.mixed(), s.lost()); why != "" {
				return why
			}
			s.apply()
			s.archive.look()
			if why := s.adoption(); why != "" {
				return why
			}
			s.now = s.now.Add(500 * time.Millisecond)
		}
		return ""
	}
	if why := step(14); why != "" {
		return why, s.story
	}
	for range 12 {
		s.write()
		s.pull(4)
		s.fault()
		s.write()
		if why := cmp.Or(s.hangNow(step), s.setBackNow(step)); why != "" {
			return why, s.story
		}
		if why := step(1 + s.rng.IntN(6)); why != "" {
			return why, s.story
		}
	}
	return s.ends(step), s.story
}

// ends (I7): when the faults have ended, a group with a majority is well again, and one
// without needs a human and nothing else.
func (s *sim) ends(step func(int) string) string {
	s.heal()
	s.pull(1)
	s.pulls = func(string) bool { return false }
	s.cluster.Group.ForceQuorum, s.cluster.Override, s.cluster.Reinit = false, nil, nil
	for _, in := range s.all {
		in.held, in.pod.FencingRequested = false, false
	}
	s.settle()
	if why := s.endHangs(step); why != "" {
		return why
	}
	if why := cmp.Or(step(60), s.waitsInVain()); why != "" {
		return why
	}
	// What is ordered may not come about, twice, and each takes two words; who gives up takes one.
	for n := range 10 + len(s.all) {
		if phase := s.cluster.Status.Phase; s.hasQuorum() && phase != core.PhaseBlocked && phase != core.PhaseFailover {
			break
		}
		if why := s.hindsight(true); why != "" {
			return why
		}
		switch {
		case n > 0 && s.refusal == core.RefusalSplitBrain:
			s.stopLeftOut()
		case n > 0 && s.refusal == core.RefusalNoSafeSurvivor && s.lacking == "":
			s.giveUp()
		}
		s.refusal = ""
		s.tellf("a human forces the quorum")
		s.now = s.now.Add(recoveryLimit)
		s.asks()
		if why := step(60); why != "" {
			return why
		}
	}
	if diverged := s.cluster.Status.Diverged; len(diverged) > 0 {
		s.tellf("a human has %s recreated", strings.Join(diverged, ", "))
		for _, name := range diverged {
			s.cluster.Reinit = append(s.cluster.Reinit, core.ReinitRequest{Instance: name})
		}
		if why := step(60); why != "" {
			return why
		}
	}
	switch phase := s.cluster.Status.Phase; {
	case phase == core.PhaseHealthy && s.cluster.Status.CurrentPrimary == s.primary &&
		s.cluster.Status.TargetPrimary == s.primary:
	case len(s.gone) > 0 && phase == core.PhaseBlocked && !s.hasQuorum(): // its data is gone
	default:
		return "I7: not well in the end: " + s.tell() + strings.Join(s.view, ",")
	}
	routed, _ := s.cluster.Routed.Get()
	if s.hasQuorum() && routed != s.primary {
		return "writes are not led to the primary " + s.primary + " in the end: " + s.tell()
	}
	return s.archive.ends(step)
}

// occasions are what has to occur in one of so many seeds, and a line of the story that tells of it.
var occasions = []struct {
	what, told string
	oneIn      int
}{
	{"a group was rebooted without a human's word", string(core.ReasonTotalOutage), 100},
	{"a status that was set back was mended", string(core.ReasonStatusRestored), 100},
	{"a primary that hangs was killed by its manager", killsHung, 100},
}

// TestSimulation plays seeds; SEEDS says how many, and FROM the first.
func TestSimulation(t *testing.T) {
	seeds := 1000
	if n, err := strconv.Atoi(os.Getenv("SEEDS")); err == nil {
		seeds = n
	}
	from, _ := strconv.Atoi(os.Getenv("FROM"))
	failed, occurred := 0, map[string]int{}
	for seed := uint64(from); seed < uint64(from+seeds); seed++ {
		why, story := play(seed, mutation{})
		all := strings.Join(story, "\n")
		if why != "" {
			t.Errorf("seed %d: %s\n%s", seed, why, all)
			if failed++; failed == 5 {
				break
			}
		}
		for _, o := range occasions {
			if strings.Contains(all, o.told) {
				occurred[o.what]++
			}
		}
	}
	for _, o := range occasions {
		n := occurred[o.what]
		t.Logf("in %d of %d %s", n, seeds, o.what)
		if seeds >= 1000 && n < seeds/o.oneIn {
			t.Errorf("only in %d of %d %s", n, seeds, o.what)
		}
	}
}
