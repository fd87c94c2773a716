package group

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// powerFails has all mysqld and managers end at once. They are back at once, too, with all
// that was cut, or when somebody has them started.
func (s *sim) powerFails(back bool) {
	s.tellf("the power fails, and is back: %t", back)
	if back {
		s.heal()
	}
	for _, in := range s.all {
		s.loseUnflushed(in)
		s.endMysqld(in)
		in.m, in.held = manager{stopping: in.m.stopping}, !back
	}
}

// apply has all members commit what they have received by now.
func (s *sim) apply() {
	for _, in := range s.all {
		if !in.stalled {
			in.applyAll()
		}
	}
}

func (in *instance) applyAll() {
	for i := len(in.log) - 1; i >= 0 && !in.log[i].applied; i-- {
		in.log[i].applied = true
	}
}

// loseUnflushed: of what a member has received and not applied, the page cache may have the last alone.
// The primary has flushed what it wrote before anybody was told.
func (s *sim) loseUnflushed(in *instance) {
	if in.name == s.primary && !s.mut.tellsUnflushed {
		return
	}
	most := 0
	for n := len(in.log); most < n && !in.log[n-1-most].applied && in.log[n-1-most].number > 0; {
		most++
	}
	if most == 0 {
		return
	}
	n := len(in.log) - s.cache.IntN(most+1)
	for _, t := range in.log[n:] {
		s.tellf("what %s had received under the number %d was not flushed", in.name, t.number)
		delete(in.content, t.number)
		in.executed = in.executed.Subtract(t.id)
	}
	in.log = in.log[:n:n]
}

// loseOperator has another begin with nothing but the Cluster's status, which was written a
// moment ago.
func (w *world) loseOperator() {
	g := *w.cluster.Status.Group
	for _, in := range w.all {
		executed, _ := in.heard.Executed.Get()
		g.Recorded, in.heard = g.Recorded.Union(executed), core.Heard{}
	}
	w.cluster.Status.Group, w.memory = &g, core.Carried{}
}

// checkOutage holds the order to reboot the group, where no human has asked for it,
// against what is true of every instance; and that it is given once in an outage.
func (s *sim) checkOutage(plan core.Plan) string {
	if s.hasQuorum() || s.cluster.Status.Group.HasQuorum {
		s.tried = false
	}
	op := plan.Status.Operation
	if op == nil || op.Reason != core.ReasonTotalOutage || op.StartedAt != s.now {
		return ""
	}
	if s.tried {
		return "the operator tries a second time in an outage to reboot the group"
	}
	s.tried = true
	lead := s.get(op.To)
	for _, in := range s.all {
		why := ""
		switch {
		case !in.pod.Exists && !in.vol.Exists, !in.given:
		case in.deaf || !in.answers():
			why = "is not heard"
		case s.says(in).State != core.MemberOffline:
			why = "is a member"
		case in.data != core.DataPopulated || in.removed:
			why = "has no data"
		case in.pod.FencingRequested:
			why = "is fenced"
		case slices.Contains(s.before.Diverged, in.name):
			why = "has diverged"
		case !lead.holds().Contains(in.holds()):
			why = "holds more"
		}
		if why != "" {
			return "I2: " + op.To + " reboots the group without a human's word, and " + in.name + " " + why
		}
	}
	return ""
}

// forgetsGiven tells of one that is said never to have had data, and has had some. A status that was set back may
// say so for as long as nobody is heard who has seen a later one.
func (s *sim) forgetsGiven() string {
	for _, in := range s.all {
		if in.given && s.lastEpoch() <= s.cluster.Status.Epoch && s.cluster.Status.Group.IsNew(in.name) {
			return "I6: " + in.name + " is said to be new, and was given data"
		}
	}
	return ""
}

// waitsInVain: all are back, and the operator waits for somebody.
func (s *sim) waitsInVain() string {
	if why := s.cluster.Status.Reason; strings.Contains(why, "The operator waits for") {
		return "I7: nobody is away, and " + why
	}
	return ""
}

// outageMutants are mistakes of the operator that reboots the group by itself.
func outageMutants() map[string]mutation {
	return map[string]mutation{
		"one of which nothing is known is not missed after an outage": {observe: inOutage(func(o *core.Observation) {
			without(o, func(in *core.Instance) bool { return !in.Report.Known() })
		})},
		"one whose data is lost is not missed after an outage": {observe: inOutage(func(o *core.Observation) {
			without(o, func(in *core.Instance) bool { return in.SaysEmpty() })
		})},
		"the former primary is not missed after an outage": {observe: inOutage(func(o *core.Observation) {
			without(o, func(in *core.Instance) bool { return in.Name == o.Cluster.Status.CurrentPrimary })
		})},
		"the primary tells of what it has not flushed": {tellsUnflushed: true},
		"one that is fenced is not missed after an outage": {observe: inOutage(func(o *core.Observation) {
			without(o, func(in *core.Instance) bool {
				pod, _ := in.Pod.Get()
				return pod.FencingRequested || slices.Contains(o.Cluster.Status.Fenced, in.Name)
			})
		})},
		"the group is rebooted as often as it takes": {observe: inOutage(func(o *core.Observation) {
			again := *o.Cluster.Status.Group
			again.OutageTried, again.LeftOut, again.ViewID = "", nil, "v:1"
			o.Cluster.Status.Group = &again
		})},
	}
}

// inOutage makes a mistake only while the operator may act by itself, and nobody who is
// heard is in a group.
func inOutage(mistake func(*core.Observation)) func(*core.Observation) {
	return func(o *core.Observation) {
		g := o.Cluster.Status.Group
		in := slices.ContainsFunc(o.Instances, func(in core.Instance) bool {
			v, known := viewOf(&in)
			return known && v.State != core.MemberOffline
		})
		if o.Cluster.Group.RecoverOutage && !o.Cluster.Group.ForceQuorum && g != nil && g.Bootstrapped &&
			o.Cluster.Status.Operation == nil && !in {
			mistake(o)
		}
	}
}

// without has the operator see nothing of some instances, and not count them.
func without(o *core.Observation, gone func(*core.Instance) bool) {
	o.Instances = slices.DeleteFunc(slices.Clone(o.Instances), func(in core.Instance) bool { return gone(&in) })
	again := *o.Cluster.Status.Group
	again.ViewMax = min(again.ViewMax, len(o.Instances))
	o.Cluster.Status.Group = &again
}

// report changes what the second instance says.
func report(change func(*core.Report)) func(*core.Observation) {
	return func(o *core.Observation) {
		r, _ := o.Instances[1].Report.Get()
		change(&r)
		o.Instances[1].Report = core.Known(r, o.Now, o.Now)
	}
}

func TestAfterAnOutageTheOperatorActsOnlyOnWhatItKnows(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*core.Observation)
		says   string
	}{
		"all is well": {func(*core.Observation) {},
			"c-1, which holds all that any instance holds, reboots the group"},
		"a word is old": {func(o *core.Observation) { agedReport(&o.Instances[1], o.Now) },
			"The operator waits for c-2 (nothing new is known of it)"},
		"a volume is not known": {func(o *core.Observation) { o.Instances[1].Volume = core.Fact[core.Volume]{} },
			"The operator waits for c-2 (nothing new is known of it)"},
		"one is being stopped": {report(func(r *core.Report) { r.Terminating = true }),
			"The operator waits for c-2 (it is being stopped)"},
		"one joins": {report(func(r *core.Report) { r.Reason = core.MemberJoining }),
			"The operator waits for c-2 (it looks for a group)"},
		"one says no group": {report(func(r *core.Report) { r.Server.Group = nil }),
			"The operator waits for c-2 (nothing new is known of it)"},
		"one is still in a group": {
			report(func(r *core.Report) { r.Server.Group = &core.GroupView{State: core.MemberError} }),
			"c-1, c-3 cannot join a group without a quorum"},
		"one found that it has diverged": {report(func(r *core.Report) { r.Errant = gtid.MustParse(groupUUID + ":9") }),
			"The operator does not reboot the group by itself: c-2 has diverged"},
		"a volume is being deleted": {func(o *core.Observation) {
			o.Instances[1].Volume = core.Known(core.Volume{Exists: true, Deleting: true}, o.Now, o.Now)
		}, "by itself: c-2 has no data, and may have lost it"},
		"two are empty": {func(o *core.Observation) {
			for i := range 2 {
				r, _ := o.Instances[i].Report.Get()
				r.Data = core.DataScratch
				o.Instances[i].Report = core.Known(r, o.Now, o.Now)
			}
		}, "by itself: c-1, c-2 have no data, and may have lost it"},
		"one is to be recreated": {
			func(o *core.Observation) { o.Cluster.Reinit = []core.ReinitRequest{{Instance: "c-2"}} },
			"by itself: the data of c-2 is to be recreated"},
		"the group had more members": {func(o *core.Observation) { o.Cluster.Status.Group.ViewMax = 4 },
			"by itself: there are 3 instances, and the group had 4 members"},
		"nobody was seen to go on": {func(o *core.Observation) { o.Cluster.Status.Group.ViewID = "" }, "by itself: " +
			"the last recovery is not complete (no member was seen to continue)"},
		"one was left out, and may be back": {func(o *core.Observation) {
			o.Cluster.Status.Group.LeftOut = []core.LeftOut{{Instance: "c-3", Admitted: true}}
		}, "by itself: the last recovery is not complete (excluded: c-3)"},
	} {
		t.Run(name, func(t *testing.T) {
			o := outage(t)
			c.change(&o)
			plan := Decide(o)
			acts := slices.ContainsFunc(plan.Effects, func(e core.Effect) bool {
				_, is := e.(core.RebootGroup)
				return is
			})
			if acts != (name == "all is well") || !strings.Contains(plan.Status.Reason, c.says) {
				t.Errorf("acts: %t; said: %s", acts, plan.Status.Reason)
			}
		})
	}
}

// outage is what is seen when all members are back.
func outage(t *testing.T) core.Observation {
	t.Helper()
	w := newWorld(3)
	w.run()
	w.cluster.Group.RecoverOutage = true
	for _, in := range w.all {
		w.endMysqld(in)
	}
	for _, in := range w.all {
		in.up = true
	}
	w.now = w.now.Add(time.Minute)
	return w.observe()
}

func agedReport(in *core.Instance, now time.Time) {
	r, _ := in.Report.Get()
	in.Report = core.Known(r, now.Add(-staleAfter-time.Second), now)
}
