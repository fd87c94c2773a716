package group

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// hanging has mysqld of some instances hang. Its dice are its own; nil where nothing hangs.
type hanging struct {
	*rand.Rand
	// excused: a manager killed the primary, and could not know that the others are no majority any more.
	excused bool
}

// killsHung tells in a story that it has come to this.
const killsHung = "the manager kills mysqld of the primary, which hangs"

func (s *sim) drawHangs(seed uint64) {
	if seed%7 == 4 {
		s.hanging.Rand = rand.New(rand.NewPCG(seed, 61))
	}
	s.kills = s.checkKilled
}

// isHung reports whether its mysqld answers nobody, or its volume completes no write. The threads of the
// group in it live on.
func (in *instance) isHung() bool { return !in.silentSince.IsZero() || in.stalled }

// hangNow has one hang at times, mostly the primary, or go on. At times nothing else happens meanwhile.
func (s *sim) hangNow(step func(int) string) string {
	if s.hanging.Rand == nil || len(s.all) == 0 || s.hanging.IntN(3) == 0 {
		return ""
	}
	in := s.get(s.primary)
	if in == nil || s.hanging.IntN(4) == 0 {
		in = s.all[s.hanging.IntN(len(s.all))]
	}
	switch {
	case in.isHung():
		s.goOn(in)
		return ""
	case !in.answers():
		return ""
	}
	s.hangs(in)
	s.write()
	return step([]int{0, 14}[s.hanging.IntN(2)])
}

func (s *sim) hangs(in *instance) {
	if s.hanging.IntN(2) == 0 {
		s.tellf("mysqld of %s answers nobody", in.name)
		s.world.hang(in, "silent")
		return
	}
	s.tellf("the volume of %s completes no write", in.name)
	if in.name == s.primary { // it has written what a client was told
		in.applyAll()
	}
	s.world.hang(in, "stalls")
}

// goOn ends that. What was never written is gone with a process that was killed.
func (s *sim) goOn(in *instance) {
	s.tellf("%s hangs no more", in.name)
	in.silentSince = time.Time{}
	if in.killed {
		s.loseUnflushed(in)
	}
	s.world.hang(in, "writes")
}

// checkKilled is told when a manager kills mysqld. It may be missed only where the others go on without it.
func (s *sim) checkKilled(in *instance) {
	switch {
	case !s.isMember(in.name) || !in.joined || !s.hasQuorum():
	case s.goesOnWithout(in, inGroup):
		if in.name == s.primary {
			s.tellf(killsHung)
		}
	case in.blind || s.past: // by what it knew once, or what a status that was set back says
		s.hanging.excused = true
	default:
		s.wrong = "I7: the manager of " + in.name + " kills mysqld, and the others are no majority"
	}
}

// isOnline and inGroup are which members count: whoever recovers is in the group and counts in its quorum, but takes
// over nothing.
func isOnline(in *instance) bool { return in.state == "" }
func inGroup(in *instance) bool  { return isOnline(in) || in.state == core.MemberRecovering }

// hasSay reports whether the member is online, and not one that the group went on without, or was told to: who was to
// go on, and hangs, may have done so alone. mysqld answers nobody while its members are forced either.
func (s *sim) hasSay(in *instance) bool {
	return isOnline(in) && !s.cluster.Status.Group.Excludes(in.name)
}

// goesOnWithout reports whether the other members that reach each other, of those that count, are a majority.
func (s *sim) goesOnWithout(in *instance, counts func(*instance) bool) bool {
	for _, lead := range s.view {
		n := 0
		for _, other := range s.view {
			if lead != in.name && other != in.name && s.reaches(lead, other) && counts(s.get(other)) {
				n++
			}
		}
		if 2*n > len(s.view) {
			return true
		}
	}
	return false
}

// goesOnWhenAllLeft reports whether the others are a majority still when those have left who were told to before it
// hung, and did not know that it would.
func (s *sim) goesOnWhenAllLeft(in *instance) bool {
	n, all := 0, 0
	for _, name := range s.view {
		switch other := s.get(name); {
		case other == in:
			all++
		case other.frozen <= s.cluster.Status.Epoch:
			all++
			if isOnline(other) {
				n++
			}
		}
	}
	return 2*n > all
}

// saysHung holds what is said of the primary against what is true: it hangs and is heard, or it does not.
func (s *sim) saysHung() string {
	status := s.cluster.Status
	in := s.get(status.CurrentPrimary)
	switch isSaid := status.Diagnosis == core.PrimaryHung; {
	case isSaid && (in == nil || !in.isHung()):
		return "I6: " + status.CurrentPrimary + " is said to hang, and does not"
	case !isSaid && status.Diagnosis == core.PrimaryHealthy && in.isHung() && in.runs() && !in.deaf &&
		!in.pod.Terminating:
		return "writes are said to be taken by " + in.name + ", of which mysqld hangs"
	}
	return ""
}

// endHangs (I7): a primary that hangs for good is replaced if the others are a majority. At last all go on.
func (s *sim) endHangs(step func(int) string) string {
	if s.hanging.Rand == nil {
		return ""
	}
	s.allGoOn(func(in *instance) bool { return in.name != s.primary || s.hanging.IntN(2) == 0 })
	if why := step(14); why != "" {
		return why
	}
	if in := s.get(s.primary); in != nil && in.answers() && s.hanging.IntN(2) == 0 {
		s.hangs(in)
	}
	if in := s.get(s.primary); in != nil && in.isHung() {
		awaited := s.goesOnWithout(in, s.hasSay) && s.goesOnWhenAllLeft(in) && s.knowsMajority(in) &&
			s.areMostHeard(in) && !s.isPast()
		if why := step(30); why != "" {
			return why
		}
		if awaited && s.primary == in.name && in.isHung() {
			return fmt.Sprintf("I7: the primary %s hangs, and nobody has taken over: %s", in.name, s.tell())
		}
	}
	s.allGoOn(func(*instance) bool { return true })
	return ""
}

// allGoOn has those go on that hang and are meant.
func (s *sim) allGoOn(is func(*instance) bool) {
	for _, in := range s.all {
		if in.isHung() && is(in) {
			s.goOn(in)
		}
	}
}

// areMostHeard reports whether most of all instances are other members that answer: nobody knows of the rest.
func (s *sim) areMostHeard(but *instance) bool {
	n := 0
	for _, in := range s.all {
		if in != but && in.answers() && s.isMember(in.name) && in.state == "" {
			n++
		}
	}
	return 2*n > len(s.all)
}

// knowsMajority reports whether the others whom mysqld saw last, before it hung, are online still, and a
// majority of those. Who has joined since is not counted on.
func (s *sim) knowsMajority(in *instance) bool {
	last, n := in.m.member.Last, 0
	if last == nil {
		return false
	}
	for _, m := range last.Members {
		for _, other := range s.view {
			if other != in.name && core.IsHostOf(m.Host, other) && m.State == core.MemberOnline &&
				s.reaches(in.name, other) && s.get(other).state == "" {
				n++
			}
		}
	}
	return 2*n > len(last.Members)
}

// hungMutants are mistakes about a primary that hangs.
func hungMutants() map[string]mutation {
	return map[string]mutation{
		"a primary that hangs is let be": {facts: func(f *agent.Facts) {
			f.Mysqld.ToEnd = f.Mysqld.ToEnd || f.Mysqld.Up && !f.Mysqld.Answers
		}},
		"a primary that hangs is killed whoever is left": {facts: allOnlineLast},
		"a primary that hangs is said to take writes": {observe: func(o *core.Observation) {
			o.Instances = slices.Clone(o.Instances)
			for i := range o.Instances {
				if r, known := o.Instances[i].Report.Get(); known && r.State == core.Hung {
					r.State = core.Running
					o.Instances[i].Report = core.Known(r, o.Now, o.Now)
				}
			}
		}},
	}
}

// allOnlineLast has whoever exists taken for a member that is online.
func allOnlineLast(f *agent.Facts) {
	if f.Member.Last == nil || f.Mysqld.Answers || f.Cluster == nil || f.Cluster.Group == nil {
		return
	}
	cluster, group, last := *f.Cluster, *f.Cluster.Group, *f.Member.Last
	group.HasQuorum, group.Online, last.Members = true, cluster.Names, nil
	for _, name := range cluster.Names {
		last.Members = append(last.Members, core.ViewMember{Host: name + ".ns.svc", State: core.MemberOnline})
	}
	cluster.Group, f.Cluster, f.Member.Last = &group, &cluster, &last
}
