package group

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
	"cnmsql.co/internal/gtid"
)

// instance is an instance of the model world: its Pod and volume, its manager, and
// mysqld as a member of the group.
type instance struct {
	name    string
	ordinal int
	pod     core.Pod
	vol     core.Volume

	up       bool // mysqld runs
	joined   bool // since it was started
	was      bool // a member of a group that is known to be made
	data     core.DataState
	executed gtid.Set
	received gtid.Set
	errant   gtid.Set
	frozen   int64
	part     int  // of the network
	deaf     bool // the operator cannot hear its manager
	stopping bool
	// stale is the view of a member that was expelled without knowing it; lie is what
	// it says whatever is true.
	stale []string
	lie   *core.GroupView
}

// world is a group in a model Kubernetes.
type world struct {
	now     time.Time
	cluster core.Cluster
	all     []*instance
	// view are the members of the group, and primary the one that they elected.
	view    []string
	primary string
	changes int
	slow    bool // the group does not hand over when it is asked to
}

func newWorld(instances int) *world {
	return &world{now: time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC), cluster: core.Cluster{Name: "c", Wanted: instances,
		SwitchoverLimit: time.Minute, Group: &core.Group{WishedName: "g-1"}}}
}

func (w *world) get(name string) *instance {
	for _, in := range w.all {
		if in.name == name {
			return in
		}
	}
	return nil
}

func (w *world) isMember(name string) bool { return slices.Contains(w.view, name) }

// reaches: two instances can speak with each other.
func (w *world) reaches(a, b string) bool {
	x, y := w.get(a), w.get(b)
	return x != nil && y != nil && x.joined && y.joined && x.part == y.part
}

// settle is what the group does by itself: those who are a majority of the view go on
// without the others, and elect a primary if theirs is gone.
func (w *world) settle() {
	for _, lead := range w.view {
		var side []string
		for _, other := range w.view {
			if w.reaches(lead, other) {
				side = append(side, other)
			}
		}
		if 2*len(side) <= len(w.view) || len(side) == len(w.view) && slices.Contains(side, w.primary) {
			continue
		}
		w.become(side)
		return
	}
}

// become gives the group another view.
func (w *world) become(view []string) {
	for _, name := range w.view {
		if in := w.get(name); in != nil && in.up && !slices.Contains(view, name) {
			in.stale = w.view
		}
	}
	w.view = view
	for _, name := range view {
		w.get(name).joined, w.get(name).stale = true, nil
	}
	w.changes++
	if !slices.Contains(view, w.primary) {
		w.primary = ""
		if len(view) > 0 {
			w.primary = slices.Min(view)
		}
	}
}

// leave takes a member out of the group, by its own word.
func (w *world) leave(name string) {
	if in := w.get(name); in != nil {
		in.stale, in.joined = nil, false
	}
	if !w.isMember(name) {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(w.view), func(n string) bool { return n == name })
	w.become(rest)
	if in := w.get(name); in != nil {
		in.stale = nil
	}
}

// hasQuorum: as many members of the view as it takes reach each other.
func (w *world) hasQuorum() bool {
	for _, lead := range w.view {
		n := 0
		for _, other := range w.view {
			if w.reaches(lead, other) {
				n++
			}
		}
		if 2*n > len(w.view) {
			return true
		}
	}
	return false
}

// says is an instance's own view.
func (w *world) says(in *instance) *core.GroupView {
	if in.lie != nil {
		return in.lie
	}
	names := w.view
	if in.stale != nil {
		names = in.stale
	}
	if !in.joined || !slices.Contains(names, in.name) {
		return &core.GroupView{State: core.MemberOffline, Received: in.received}
	}
	v := &core.GroupView{State: core.MemberOnline, Role: core.MemberSecondary, ViewID: fmt.Sprintf("v:%d", w.changes), Received: in.received}
	if in.stale != nil {
		v.ViewID = "v:old"
	}
	for _, name := range names {
		m := core.ViewMember{Host: name + ".ns.svc", UUID: "uuid-" + name, State: core.MemberOnline, Role: core.MemberSecondary}
		// Those who are in another view by now do not speak with one who is in an old one.
		if !w.reaches(in.name, name) || !slices.Equal(in.stale, w.get(name).stale) {
			m.State = core.MemberUnreachable
		}
		if name == w.primary {
			m.Role = core.MemberPrimary
		}
		v.Members = append(v.Members, m)
	}
	if in.name == w.primary {
		v.Role = core.MemberPrimary
	}
	return v
}

func (w *world) observe() core.Observation {
	o := core.Observation{Now: w.now, Cluster: w.cluster}
	o.Cluster.Status.InstanceNames = slices.Clone(o.Cluster.Status.InstanceNames)
	routed, _ := w.cluster.Routed.Get()
	o.Cluster.Routed = core.Known(routed, w.now, w.now)
	for _, in := range w.all {
		if !in.pod.Exists && !in.vol.Exists && !slices.Contains(w.cluster.Status.InstanceNames, in.name) {
			continue // nobody knows of it any more
		}
		out := core.Instance{Name: in.name, Ordinal: in.ordinal, Pod: core.Known(in.pod, w.now, w.now), Volume: core.Known(in.vol, w.now, w.now)}
		if in.pod.Exists && !in.deaf {
			out.Report = core.Known(w.report(in), w.now, w.now)
		}
		o.Instances = append(o.Instances, out)
	}
	return o
}

func (w *world) report(in *instance) core.Report {
	r := core.Report{Instance: in.name, PodUID: in.pod.UID, State: core.Stopped, Data: in.data, FrozenBelow: in.frozen, Errant: in.errant, Terminating: in.stopping}
	if !in.up {
		return r
	}
	r.State = core.Running
	if in.data == core.DataScratch {
		r.State = core.AwaitingClone
	}
	if slices.Contains(w.cluster.Status.Fenced, in.name) && !w.isMember(in.name) {
		r.State = core.Fenced
	}
	r.Server = &core.Server{UUID: "uuid-" + in.name, Executed: in.executed, Group: w.says(in)}
	return r
}

// manage is what the managers do by themselves.
func (w *world) manage() {
	s := w.cluster.Status
	for _, in := range w.all {
		in.was = in.was || in.joined && s.Group != nil && s.Group.Bootstrapped
		in.pod.Ready = in.up && w.isMember(in.name) && in.stale == nil
		wanted := in.up && in.pod.Exists && in.data == core.DataPopulated && in.errant.IsEmpty() && !in.stopping &&
			in.frozen <= s.Epoch && !slices.Contains(s.Fenced, in.name)
		switch {
		case in.pod.Exists && in.up && in.data == core.DataEmpty && s.Group != nil && !s.Group.Bootstrapped && s.TargetPrimary == in.name:
			in.data = core.DataPopulated
		case in.pod.Exists && in.up && in.data == core.DataEmpty && s.Group != nil && s.Group.Name != "":
			in.data = core.DataScratch
		case in.joined && in.up && !wanted:
			w.leave(in.name)
		case !wanted || in.joined && in.stale == nil || s.Group == nil:
		case !s.Group.Bootstrapped && s.TargetPrimary == in.name && !in.was:
			w.become([]string{in.name})
		case s.Group.Bootstrapped && w.hasQuorum() && w.finds(in):
			w.become(append(draft.Without(w.view, in.name), in.name))
		}
	}
}

// carryOut does what a plan says.
func (w *world) carryOut(e core.Effect) {
	switch e := e.(type) {
	case core.CreateVolume:
		w.make(e.Instance, e.Ordinal).vol = core.Volume{Exists: true, Bound: true}
	case core.CreatePod:
		in := w.make(e.Instance, e.Ordinal)
		in.pod = core.Pod{Exists: true, UID: "uid-" + e.Instance, Current: true, Address: fmt.Sprintf("10.0.0.%d", e.Ordinal)}
		in.up, in.stopping = true, false
	case core.DeletePod:
		w.leave(e.Instance)
		in := w.get(e.Instance)
		in.pod, in.up = core.Pod{}, false
	case core.DeleteInstance:
		w.leave(e.Instance)
		w.all = slices.DeleteFunc(w.all, func(in *instance) bool { return in.name == e.Instance })
	case core.ReinitInstance:
		w.leave(e.Instance)
		in := w.get(e.Instance)
		*in = instance{name: in.name, ordinal: in.ordinal, data: core.DataEmpty}
	case core.FreezeIO:
		w.get(e.Instance).frozen = e.Epoch
	case core.CloneFrom:
		in := w.get(e.Instance)
		in.data, in.executed = core.DataPopulated, w.get(e.Donor).executed
	case core.SetGroupPrimary:
		if !w.slow {
			w.primary = e.Primary
			w.changes++
		}
	case core.ForceMembers:
		w.become(strings.Split(e.Members, ","))
	case core.RebootGroup:
		w.become([]string{e.Instance})
	default:
		w.note(e)
	}
}

// note carries out what changes Kubernetes objects only.
func (w *world) note(e core.Effect) {
	switch e := e.(type) {
	case core.LabelPod:
		in := w.get(e.Instance)
		in.pod.Role, in.pod.Routable = e.Role, e.Routable
	case core.RouteWrites:
		w.cluster.Routed = core.Known(e.Instance, w.now, w.now)
	case core.ClearReinit:
		w.cluster.Reinit = draft.Without(w.cluster.Reinit, e.Instance)
	case core.ClearForceQuorum:
		w.cluster.Group.ForceQuorum = false
	case core.ClearDemote:
		w.get(e.Instance).pod.DemoteRequested = false
	}
}

func (w *world) make(name string, ordinal int) *instance {
	if in := w.get(name); in != nil {
		return in
	}
	w.all = append(w.all, &instance{name: name, ordinal: ordinal, data: core.DataEmpty})
	slices.SortFunc(w.all, func(a, b *instance) int { return a.ordinal - b.ordinal })
	return w.get(name)
}

// finds: a member can be reached that could take the instance in.
func (w *world) finds(in *instance) bool {
	return slices.ContainsFunc(w.view, func(name string) bool { m := w.get(name); return m.joined && m.part == in.part && name != in.name })
}

// run decides, carries out, and lets the managers act until all is quiet; the effects
// and events are told in their order.
func (w *world) run() string {
	var b strings.Builder
	for range 60 {
		before := w.image()
		w.manage()
		w.settle()
		plan := Decide(w.observe())
		w.cluster.Status = plan.Status
		for _, e := range plan.Events {
			fmt.Fprintf(&b, "  %s: %s\n", e.Reason, e.Message)
		}
		for _, e := range plan.Effects {
			fmt.Fprintf(&b, "- %s\n", e)
			w.carryOut(e)
		}
		soon := plan.Recheck > 0 && plan.Recheck <= 3*time.Second
		if w.image() == before && !soon {
			break
		}
		w.now = w.now.Add(400 * time.Millisecond)
	}
	b.WriteString(w.tell())
	return b.String()
}

// image is everything that can change.
func (w *world) image() string {
	s := w.cluster.Status
	text := fmt.Sprint(w.view, w.primary, s.Fenced, s.Diverged, s.Group, s.Phase, s.Reason, s.Epoch, s.TargetPrimary, s.Operation, s.InstanceNames, w.cluster.Reinit)
	for _, in := range w.all {
		text += fmt.Sprint(in.name, in.pod, in.vol, in.up, in.data, in.frozen, in.stale)
	}
	return text
}

func (w *world) tell() string {
	s := w.cluster.Status
	routed, _ := w.cluster.Routed.Get()
	return fmt.Sprintf("= %s, %s (%s): %s\nprimary %q routed %q epoch %d quorum %t of %d\n", s.Diagnosis, s.Phase, s.State, s.Reason,
		s.CurrentPrimary, routed, s.Epoch, s.Group.HasQuorum, s.Group.ViewMax)
}
