package group

import (
	"slices"
	"testing"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// newcomer is what is seen when the one member of a group is back in none, and c-2 is being made.
func newcomer() core.Observation {
	w := newWorld(1)
	w.run()
	w.cluster.Wanted = 2
	_, _ = w.pass()
	w.endMysqld(w.get("c-1"))
	w.get("c-1").up = true
	return w.observe()
}

// unheard has the second instance not heard, its Pod as it is said, and those new who are named.
func unheard(pod core.Pod, names ...string) func(*core.Observation) {
	return func(o *core.Observation) {
		o.Instances[1].Pod = core.Known(pod, o.Now, o.Now)
		again := *o.Cluster.Status.Group
		again.New, o.Cluster.Status.Group = names, &again
		o.Instances[1].Report = core.Fact[core.Report]{}
	}
}

func TestWhoIsEmptyIsANewcomerOnlyWhereNobodyEverJoined(t *testing.T) {
	report := func(change func(*core.Report)) func(*core.Observation) {
		return func(o *core.Observation) {
			r, _ := o.Instances[1].Report.Get()
			change(&r)
			o.Instances[1].Report = core.Known(r, o.Now, o.Now)
		}
	}
	status := func(change func(*core.GroupStatus)) func(*core.Observation) {
		return func(o *core.Observation) {
			again := *o.Cluster.Status.Group
			change(&again)
			o.Cluster.Status.Group = &again
		}
	}
	for name, c := range map[string]struct {
		change func(*core.Observation)
		acts   bool
	}{
		"it is empty": {func(*core.Observation) {}, true},
		"it never ran": {func(o *core.Observation) {
			o.Instances[1].Report = core.Fact[core.Report]{}
			o.Instances[1].Pod = core.Known(core.Pod{Exists: true, NeverStarted: true}, o.Now, o.Now)
			o.Instances[1].Volume = core.Known(core.Volume{Exists: true}, o.Now, o.Now)
		}, true},
		"the member does not tell of its group": {func(o *core.Observation) {
			r, _ := o.Instances[0].Report.Get()
			r.Server = &core.Server{Executed: r.Server.Executed}
			o.Instances[0].Report = core.Known(r, o.Now, o.Now)
		}, false},
		"it is not heard":      {unheard(core.Pod{Exists: true, NeverStarted: true}), false},
		"nor heard, but new":   {unheard(core.Pod{Exists: true, NeverStarted: true}, "c-2"), true},
		"new, no Pod":          {unheard(core.Pod{}, "c-2"), true},
		"new by an old list":   {unheard(core.Pod{Exists: true}, "c-2"), false},
		"what it says is old":  {func(o *core.Observation) { agedReport(&o.Instances[1], o.Now) }, false},
		"it has data":          {report(func(r *core.Report) { r.Data = core.DataPopulated }), false},
		"its data was removed": {report(func(r *core.Report) { r.Server = &core.Server{DataRemoved: true} }), false},
		"the group had two":    {status(func(g *core.GroupStatus) { g.ViewMax = 2 }), false},
		"it was left out": {status(func(g *core.GroupStatus) {
			g.LeftOut = []core.LeftOut{{Instance: "c-2"}}
		}), false},
		"another was the primary": {func(o *core.Observation) { o.Cluster.Status.CurrentPrimary = "c-2" }, false},
		"it held more once": {func(o *core.Observation) {
			o.Instances[1].LastExecuted = core.Known(gtid.MustParse(groupUUID+":1-9"), o.Now, o.Now)
		}, false},
		"more was seen": {func(o *core.Observation) { o.Carried.Held = gtid.MustParse(groupUUID + ":1-9") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newcomer()
			c.change(&o)
			plan := Decide(o)
			order := core.RebootGroup{Instance: "c-1", Epoch: plan.Status.Epoch}
			if acts := slices.Contains(plan.Effects, core.Effect(order)); acts != c.acts {
				t.Errorf("the group is made again: %t; said: %s", acts, plan.Status.Reason)
			}
		})
	}
}

// TestAPrimaryWithoutDataHasLostThem holds who is no newcomer: another had joined, and no operator had seen that yet.
func TestAPrimaryWithoutDataHasLostThem(t *testing.T) {
	o := newcomer()
	one, _ := o.Instances[0].Report.Get()
	two, _ := o.Instances[1].Report.Get()
	one.Data, one.Server, one.State, two.Data, two.Server, two.State = two.Data, two.Server, two.State, one.Data,
		one.Server, one.State
	o.Instances[0].Report, o.Instances[1].Report = core.Known(one, o.Now, o.Now), core.Known(two, o.Now, o.Now)
	d := newDecision(&o)
	if why := d.lacksData(); why != "c-1 has no data, and may have lost it" {
		t.Errorf("the primary that was seen last has no data: %q", why)
	}
}
