package group

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// mutation is a mistake that the simulation must find.
type mutation struct {
	observe func(*core.Observation)
	plan    func(*core.Observation, *core.Plan)
}

// sim plays faults upon a model group, drawn from a seed, and holds what happens
// against the invariants. The group itself is a model: what it does is given; what is
// tried is what the operator does about it.
type sim struct {
	*world
	mut mutation
	rng *rand.Rand
	// acked are the transactions that a client was told are committed, by their numbers.
	acked map[int]int
	next  int
	// ordered is a quorum to be forced, after so many passes more.
	ordered *core.ForceMembers
	delay   int
	failed  bool // it has not come about once; it will from now on
	made    int  // times that a group was made
	gone    map[string]bool
	story   []string
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
		if !s.reaches(s.primary, name) || s.rng.IntN(5) == 0 {
			continue
		}
		s.get(name).hold(number, s.next)
		if name == s.primary {
			s.acked[number] = s.next
		}
	}
}

// fault is one thing that happens; who does not exist is spared.
func (s *sim) fault() {
	if len(s.all) == 0 {
		return
	}
	in := s.all[s.rng.IntN(len(s.all))]
	switch n := s.rng.IntN(22); {
	case n < 4:
		s.tellf("down %s", in.name)
		in.up, in.joined, in.stale = false, false, nil
	case n < 8:
		s.tellf("up all")
		for _, in := range s.all {
			in.up = in.pod.Exists
		}
	case n < 10:
		s.tellf("cut %s", in.name)
		in.part, in.deaf = 1, true
	case n < 13:
		s.tellf("heal all")
		s.heal()
	case n < 15:
		s.tellf("deaf %s", in.name)
		in.deaf = true
	case n == 15:
		s.tellf("volume of %s gone", in.name)
		s.leave(in.name)
		s.gone[in.name] = true
		*in = instance{name: in.name, ordinal: in.ordinal, data: core.DataEmpty}
	default:
		s.human(in, n)
	}
	s.settle()
}

func (s *sim) human(in *instance, n int) {
	switch n {
	case 16:
		s.tellf("fence %s", in.name)
		in.pod.FencingRequested = true
	case 17:
		s.tellf("unfence all")
		for _, in := range s.all {
			in.pod.FencingRequested = false
		}
	case 18:
		s.tellf("target %s", in.name)
		s.cluster.Status.TargetPrimary = in.name
	case 19:
		s.cluster.Wanted = 1 + s.rng.IntN(5)
		s.tellf("spec instances=%d", s.cluster.Wanted)
	case 20:
		s.tellf("reinit %s", in.name)
		s.cluster.Reinit = append(s.cluster.Reinit, in.name)
	case 21:
		s.tellf("force")
		s.cluster.Group.ForceQuorum = true
	}
}

func (s *sim) heal() {
	for _, in := range s.all {
		in.part, in.deaf = 0, false
	}
}

// pass is one pass of the operator; its violation of an invariant is returned.
func (s *sim) pass() string {
	o := s.observe()
	if s.mut.observe != nil {
		s.mut.observe(&o)
	}
	plan := Decide(o)
	if s.mut.plan != nil {
		s.mut.plan(&o, &plan)
	}
	had, before, primary := s.hasQuorum(), s.cluster.Status, s.primary
	s.cluster.Status, s.memory = plan.Status, plan.Memory
	if before.Group != nil && before.Group.Bootstrapped && !plan.Status.Group.Bootstrapped {
		return "I5: the group is said not to be made any more"
	}
	for _, e := range plan.Effects {
		if why := s.check(e, had, primary); why != "" {
			return why
		}
		if _, forces := e.(core.ForceMembers); !forces {
			s.carryOut(e)
		}
	}
	s.force()
	return s.letManagersAct(had)
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
	if s.hasQuorum() || !s.get(e.Instance).joined || !s.failed && s.rng.IntN(4) == 0 {
		s.tellf("nothing is forced")
		s.failed = true
		return
	}
	s.acked = maps.Clone(s.get(e.Instance).content) // a human accepted what is lost
	s.carryOut(*e)
}

// letManagersAct: nothing that the operator wants may cost a group its majority that
// has one.
func (s *sim) letManagersAct(had bool) string {
	made := s.view
	s.manage()
	if len(made) == 0 && len(s.view) == 1 {
		s.made++
		if s.made > 1 {
			return "I5: a group was made by itself a second time"
		}
	}
	if had && !s.hasQuorum() && len(s.cluster.Status.InstanceNames) > 0 {
		return "I7: the operator took the group's majority away: " + s.tell()
	}
	s.settle()
	return ""
}

// check holds an effect against what is true.
func (s *sim) check(e core.Effect, had bool, primary string) string {
	switch e := e.(type) {
	case core.RebootGroup:
		return s.checkReboot(e.Instance, had)
	case core.ForceMembers:
		if had {
			return "I1: a quorum was forced beside one that there is"
		}
		s.ordered, s.delay = &e, s.rng.IntN(4)
	case core.DeleteInstance:
		if in := s.get(e.Instance); !in.errant.IsEmpty() {
			return "I4: data that nobody else has was removed: " + e.Instance
		}
		if s.isMember(e.Instance) && s.get(e.Instance).joined {
			return "a member was removed before it left the group: " + e.Instance
		}
	case core.RouteWrites:
		if had && e.Instance != primary && !s.get(e.Instance).deaf {
			return fmt.Sprintf("writes were led to %s, and the group has elected %s", e.Instance, primary)
		}
	}
	return ""
}

func (s *sim) checkReboot(lead string, had bool) string {
	if had {
		return "I5: the group was made anew beside one that there is"
	}
	return s.lacksAcked(lead)
}

// lost: the primary of a group with a majority lacks what was acknowledged, though no
// human accepted it and no more than a minority lost its data.
func (s *sim) lost() string {
	if s.primary == "" || !s.hasQuorum() || len(s.gone) > 0 {
		return ""
	}
	return s.lacksAcked(s.primary)
}

func (s *sim) lacksAcked(primary string) string {
	if len(s.gone) > 0 {
		return ""
	}
	for number, what := range s.acked {
		if holds := s.get(primary).content[number]; holds != what {
			return fmt.Sprintf("I2: %s goes on and holds %d under the number %d, for which %d was acknowledged", primary, holds, number, what)
		}
	}
	return ""
}

// mixed: a member of the group holds something else under a number than its primary.
func (s *sim) mixed() string {
	if s.primary == "" || !s.hasQuorum() {
		return ""
	}
	truth := s.get(s.primary).content
	for _, name := range s.view {
		for number, what := range s.get(name).content {
			if is, has := truth[number]; s.reaches(name, s.primary) && has && is != what {
				return fmt.Sprintf("%s is a member and holds %d under the number %d, where the primary %s holds %d", name, what, number, s.primary, is)
			}
		}
	}
	return ""
}

// catchUp: members that have the majority receive from each other.
func (s *sim) catchUp() {
	if s.primary == "" || !s.hasQuorum() {
		return
	}
	s.learn(slices.DeleteFunc(slices.Clone(s.view), func(name string) bool { return !s.reaches(name, s.primary) }))
}

func play(seed uint64, mut mutation) (violation string, story []string) {
	s := &sim{world: newWorld(3), mut: mut, rng: rand.New(rand.NewPCG(seed, 7)), acked: map[int]int{}, gone: map[string]bool{}}
	step := func(passes int) string {
		for range passes {
			if why := s.pass(); why != "" {
				return why
			}
			if why := cmp.Or(s.mixed(), s.lost()); why != "" {
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
		s.fault()
		s.write()
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
	s.cluster.Group.ForceQuorum, s.cluster.Reinit = false, nil
	for _, in := range s.all {
		in.up, in.pod.FencingRequested = in.pod.Exists, false
	}
	s.settle()
	if why := step(60); why != "" {
		return why
	}
	for range 4 { // what is ordered may not come about
		if s.hasQuorum() && s.cluster.Status.Phase != core.PhaseBlocked {
			break
		}
		s.tellf("a human forces the quorum")
		s.now = s.now.Add(recoveryLimit)
		s.cluster.Group.ForceQuorum = true
		if why := step(60); why != "" {
			return why
		}
	}
	if diverged := s.cluster.Status.Diverged; len(diverged) > 0 {
		s.tellf("a human has %s made anew", strings.Join(diverged, ", "))
		s.cluster.Reinit = slices.Clone(diverged)
		if why := step(60); why != "" {
			return why
		}
	}
	switch phase := s.cluster.Status.Phase; {
	case phase == core.PhaseHealthy && s.cluster.Status.CurrentPrimary == s.primary && s.cluster.Status.TargetPrimary == s.primary:
	case len(s.gone) > 0 && phase == core.PhaseBlocked && !s.hasQuorum(): // its data is gone
	default:
		return "I7: not well in the end: " + s.tell() + strings.Join(s.view, ",")
	}
	routed, _ := s.cluster.Routed.Get()
	if s.hasQuorum() && routed != s.primary {
		return "writes are not led to the primary " + s.primary + " in the end: " + s.tell()
	}
	return ""
}

// TestSimulation plays seeds; SEEDS says how many.
func TestSimulation(t *testing.T) {
	seeds := 3000
	if n, err := strconv.Atoi(os.Getenv("SEEDS")); err == nil {
		seeds = n
	}
	for seed := range uint64(seeds) {
		if why, story := play(seed, mutation{}); why != "" {
			t.Fatalf("seed %d: %s\n%s", seed, why, strings.Join(story, "\n"))
		}
	}
}

// TestMutants: each mistake is found within so many seeds.
func TestMutants(t *testing.T) {
	const within = 3000
	for name, mut := range mutants() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(within) {
				if why, _ := play(seed, mut); why != "" {
					t.Logf("found by seed %d: %s", seed, why)
					return
				}
			}
			t.Errorf("not found within %d seeds", within)
		})
	}
}

func mutants() map[string]mutation {
	unknownIsGone := func(o *core.Observation) {
		o.Instances = slices.DeleteFunc(slices.Clone(o.Instances), func(in core.Instance) bool { return !in.Report.Known() })
	}
	return map[string]mutation{
		"who was left out is judged by its position alone": {plan: func(_ *core.Observation, p *core.Plan) {
			again := *p.Status.Group
			again.LeftOut = slices.Clone(again.LeftOut)
			for i := range again.LeftOut {
				again.LeftOut[i].Admitted = true
			}
			p.Status.Group = &again
		}},
		"the majority is counted of those who can be asked": {observe: func(o *core.Observation) {
			unknownIsGone(o)
			if g := o.Cluster.Status.Group; g != nil {
				again := *g
				again.ViewMax = 0
				o.Cluster.Status.Group = &again
			}
		}},
		"whoever cannot be asked is not missed when the group is made anew": {observe: func(o *core.Observation) {
			if o.Cluster.Group.ForceQuorum {
				unknownIsGone(o)
			}
		}},
		"the group is made anew without a human's word": {observe: func(o *core.Observation) {
			again := *o.Cluster.Group
			again.ForceQuorum = true
			o.Cluster.Group = &again
		}, plan: func(_ *core.Observation, p *core.Plan) {
			for _, e := range p.Effects {
				if r, reboots := e.(core.RebootGroup); reboots { // and without the look at who holds what
					p.Effects = append(p.Effects, core.RebootGroup{Instance: "c-1", Epoch: r.Epoch})
				}
			}
		}},
		"the group is made anew from whoever comes first": {plan: func(o *core.Observation, p *core.Plan) {
			for i, e := range p.Effects {
				if r, reboots := e.(core.RebootGroup); reboots {
					p.Effects[i] = core.RebootGroup{Instance: o.Instances[0].Name, Epoch: r.Epoch}
				}
			}
		}},
		"members are fenced whatever becomes of the majority": {plan: func(o *core.Observation, p *core.Plan) {
			for i := range o.Instances {
				in := &o.Instances[i]
				if pod, _ := in.Pod.Get(); pod.FencingRequested && !slices.Contains(p.Status.Fenced, in.Name) {
					p.Status.Fenced = append(p.Status.Fenced, in.Name)
				}
			}
		}},
		"a surplus member is removed at once": {plan: func(o *core.Observation, p *core.Plan) {
			if n := len(o.Instances); n > o.Cluster.Wanted && p.Status.Group.Bootstrapped {
				p.Effects = append(p.Effects, core.DeleteInstance{Instance: o.Instances[n-1].Name})
			}
		}},
		"the target stays when the group elects another": {plan: func(o *core.Observation, p *core.Plan) {
			if before := o.Cluster.Status; before.TargetPrimary != "" && before.CurrentPrimary != "" {
				p.Status.TargetPrimary = before.TargetPrimary
			}
		}},
		"that the group was made is forgotten": {plan: func(o *core.Observation, p *core.Plan) {
			if !p.Status.Group.HasQuorum {
				again := *p.Status.Group
				again.Bootstrapped = false
				p.Status.Group = &again
			}
		}},
	}
}
