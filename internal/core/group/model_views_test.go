package group

import (
	"fmt"
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// says is an instance's own view.
func (w *world) says(in *instance) *core.GroupView {
	if in.state == core.MemberError { // it sees nobody else
		return &core.GroupView{State: core.MemberError, Members: []core.ViewMember{{Host: in.name + ".ns.svc",
			UUID: "uuid-" + in.name, State: core.MemberError}}, Received: in.received}
	}
	names := w.view
	if in.stale != nil {
		names = in.stale
	}
	if !in.joined || !slices.Contains(names, in.name) {
		return &core.GroupView{State: core.MemberOffline, Received: in.received}
	}
	v := &core.GroupView{State: core.MemberOnline, Role: core.MemberSecondary, ViewID: fmt.Sprintf("v:%d", w.changes),
		Received: in.received}
	if in.stale != nil {
		v.ViewID = in.was
	}
	if in.state == core.MemberRecovering {
		v.State = core.MemberRecovering
	}
	for _, name := range names {
		m := core.ViewMember{Host: name + ".ns.svc", UUID: "uuid-" + name, State: w.sees(in, name),
			Role: core.MemberSecondary, Version: w.versionOf(name)}
		if name == w.primaryOf(in) {
			m.Role = core.MemberPrimary
		}
		v.Members = append(v.Members, m)
	}
	if in.name == w.primaryOf(in) {
		v.Role = core.MemberPrimary
	}
	return v
}

// primaryOf is the primary in an instance's view. Those who have a majority of an old view,
// without its primary, elect another.
func (w *world) primaryOf(in *instance) string {
	if in.stale == nil {
		return w.primary
	}
	var online []string
	for _, name := range in.stale {
		if other := w.get(name); other != nil && w.sees(in, name) == core.MemberOnline {
			online = append(online, name)
		}
	}
	if 2*len(online) <= len(in.stale) || slices.Contains(online, in.former) {
		return in.former
	}
	return slices.Min(online)
}

// sees is the state of a member in another's view, or in its own.
func (w *world) sees(in *instance, name string) core.MemberState {
	other := w.get(name)
	switch {
	// Those who are in another view by now do not speak with one who is in an old one.
	case !w.reaches(in.name, name), !slices.Equal(in.stale, other.stale):
		return core.MemberUnreachable
	case in != other && (in.state == core.MemberUnreachable || other.state == core.MemberUnreachable):
		return core.MemberUnreachable
	case other.state == core.MemberRecovering:
		return core.MemberRecovering
	}
	return core.MemberOnline
}

func (w *world) observe() core.Observation {
	o := core.Observation{Now: w.now, Cluster: w.cluster, Carried: w.memory}
	o.Cluster.Status.InstanceNames = slices.Clone(o.Cluster.Status.InstanceNames)
	routed, _ := w.cluster.Routed.Get()
	o.Cluster.Routed = core.Known(routed, w.now, w.now)
	for _, in := range w.all {
		if !in.pod.Exists && !in.vol.Exists && !slices.Contains(w.cluster.Status.InstanceNames, in.name) {
			in.given = false // nobody knows of it any more
			continue
		}
		out := core.Instance{Name: in.name, Ordinal: in.ordinal, Pod: core.Known(in.pod, w.now, w.now),
			Volume: core.Known(in.vol, w.now, w.now)}
		if in.runs() && !in.deaf {
			in.heard.Take(w.report(in), w.now, w.now)
		} else {
			in.heard.Lose()
		}
		in.heard.Put(&out)
		o.Instances = append(o.Instances, out)
	}
	return o
}

func (w *world) report(in *instance) core.Report {
	f := w.facts(in)
	d := agent.Decide(f)
	r := core.Report{Instance: in.name, PodUID: in.pod.UID, State: d.State, Reason: d.Reason, Message: d.Message,
		Errant: d.Errant, Manager: in.manager, Data: in.data, Version: in.version,
		VolumeLocked: true, SeenEpoch: in.m.seen, ViewEpoch: in.viewEpoch,
		NoReceivingBelow: in.frozen, Terminating: !in.m.stopping.IsZero(),
		Server: f.Server, Lagging: in.lags, Room: in.room, TokenRefused: in.unknown, Former: in.left}
	if f.Server != nil {
		r.Server.Group = w.tells(in)
	}
	return r
}

// tells is what an instance says of its group, which may be a lie.
func (w *world) tells(in *instance) *core.GroupView {
	if in.lie != nil {
		return in.lie
	}
	return w.says(in)
}
