package group

import (
	"maps"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/core/draft"
	"cnmsql.co/internal/gtid"
)

// manager is one run of an instance's manager: what internal/instance is in reality,
// around the real agent.Decide.
type manager struct {
	view      *agent.Cluster // as it has heard of it
	member    agent.MemberFacts
	position  *agent.Position
	askFailed string
	donor     string
	seen      int64
	stopping  time.Time // when its Pod was asked to stop
	downSince time.Time
}

// manage lets each manager decide, and do what it decides, until it waits; soon: one waits
// for time to pass.
func (w *world) manage() (soon bool) {
	w.discover()
	for _, in := range slices.Clone(w.all) {
		w.hear(in)
		w.see(in)
		for range w.diligence() {
			if !w.actOnce(in) {
				break
			}
		}
		in.pod.Ready = in.pod.Exists && in.answers() && w.tells(in).State == core.MemberOnline
		waits := in.runs() && !in.m.member.TriedAt.IsZero() && w.now.Sub(in.m.member.TriedAt) < 4*time.Second
		lacks := in.runs() && in.m.position != nil && !in.m.position.LackingSince.IsZero() &&
			w.now.Sub(in.m.position.LackingSince) < 6*time.Second
		fails := in.runs() && !in.m.member.ErrorSince.IsZero() && !in.idle
		soon = soon || waits || lacks || fails || !in.m.stopping.IsZero() && !in.held
	}
	return soon
}

// actOnce has a manager decide once, and tells whether it got on.
func (w *world) actOnce(in *instance) bool {
	if !in.runs() || in.idle {
		return false
	}
	actions := agent.Decide(w.facts(in)).Actions
	for _, a := range actions {
		if !w.act(in, a) {
			return false
		}
	}
	return len(actions) > 0
}

// runs reports whether its Pod has started, so that its manager runs.
func (in *instance) runs() bool { return in.pod.Exists && !in.pod.NeverStarted }

func (in *instance) answers() bool {
	return in.up && !in.starting && in.silentSince.IsZero() && !in.stalled
}

// holds is all that the server of an instance has executed.
func (in *instance) holds() gtid.Set { return in.executed.Union(in.errant) }

func (w *world) facts(in *instance) *agent.Facts {
	m := &in.m
	f := &agent.Facts{Now: w.now, Me: in.name, PodUID: in.pod.UID, Cluster: m.view, Locked: true, Data: in.data,
		NoReceivingBelow: in.frozen,
		Member:           m.member, Donor: m.donor, Primary: m.position, AskFailed: m.askFailed,
		TerminatingSince: m.stopping,
		Mysqld: agent.Mysqld{Up: in.up, Accepted: in.up && !in.starting, Answers: in.answers(), AnsweredAt: w.now,
			StartedAt: w.now, DownSince: m.downSince, LacksSpace: in.hangs, DiskStalled: in.stalled}}
	if !in.silentSince.IsZero() {
		f.Mysqld.AnsweredAt = in.silentSince
	}
	f.Member.Of, f.Member.ViewEpoch = in.of, in.viewEpoch
	if in.answers() {
		f.Server = w.server(in)
		m.member.See(f.Server, w.now)
	}
	f.Member.Last, f.Mysqld.ToEnd = m.member.Last, in.killed
	if w.mut.facts != nil {
		w.mut.facts(f)
	}
	return f
}

func (w *world) server(in *instance) *core.Server {
	view := w.says(in)
	return &core.Server{UUID: "uuid-" + in.name, Executed: in.holds(), Group: view, DataRemoved: in.removed,
		SuperReadOnly: view == nil || view.Role != core.MemberPrimary}
}

// hear lets a manager know what the Cluster says, if it reaches the API server, and that
// its Pod is to stop.
func (w *world) hear(in *instance) {
	if !in.runs() || in.blind {
		return
	}
	s := cloned(w.cluster.Status)
	in.m.view = &agent.Cluster{FirstData: core.OriginInitialized, Instances: w.cluster.Wanted, MaxStart: time.Hour,
		MaxStop: time.Hour, Topology: core.TopologyGroup}
	in.m.view.TakeStatus(&s, in.name)
	in.m.view.Group.Rejoins = true
	in.viewEpoch = max(in.viewEpoch, s.Epoch)
	in.m.seen = max(in.m.seen, in.viewEpoch)
	if in.pod.Terminating && in.m.stopping.IsZero() {
		in.m.stopping = w.now
	}
}

// act does what a manager has decided; true if it came about.
func (w *world) act(in *instance, a agent.Action) bool {
	m := &in.m
	switch a := a.(type) {
	case agent.MakeData:
		in.data = core.DataScratch
		if a.From != core.OriginCloned {
			in.data, in.given = core.DataPopulated, true
		}
	case agent.StartServer:
		in.up = !in.held
		return in.up
	case agent.StopServer:
		if a.Kill {
			w.kills(in)
		}
		if in.stalled { // its threads of the group are gone, and the process is not
			in.joined, in.stale, in.killed = false, nil, true
			return false
		}
		w.endMysqld(in)
	case agent.Exit:
		w.endPod(in)
	case agent.ForgetData:
		w.endMysqld(in)
		in.data, in.executed, in.content, in.removed = core.DataEmpty, gtid.Set{}, nil, false
		in.log, in.dropped, in.purged = nil, 0, gtid.Set{}
	case agent.CloneFrom:
		return w.clone(in, w.get(a.Donor))
	case agent.AskPrimary:
		return w.ask(in, a)
	case agent.BootstrapGroup:
		return w.bootstrap(in, a)
	case agent.JoinGroup:
		return w.join(in)
	case agent.LeaveGroup:
		w.leave(in.name)
		in.state = ""
		m.member.Left(false, w.now)
	case agent.RememberGroup:
		in.of = a.Of
		m.member.Remembered()
	default:
		return m.note(a)
	}
	return true
}

// note does what changes nothing but its own server's settings.
func (m *manager) note(a agent.Action) bool {
	switch a := a.(type) {
	case agent.SettleRole:
		m.member.Settled = a.Role
	case agent.HoldRejoin:
		m.member.RejoinHeld = a.On
	case agent.HoldExpulsion:
		m.member.ExpelHeld = a.On
	case agent.AdmitMembers:
		m.member.Admitted, m.member.AdmittedEpoch = a.Addresses, 0
	case agent.RaiseProtocol:
		m.member.ProtocolOf = a.Version
	case agent.ForgetFormer:
		m.member.Forgot = a.View
	default:
		return false
	}
	return true
}

// endMysqld ends it, and what its manager knew of it.
func (w *world) endMysqld(in *instance) {
	in.up, in.starting, in.joined, in.stale, in.state = false, false, false, nil, ""
	in.m.downSince, in.silentSince, in.killed = w.now, time.Time{}, false
	in.m.member.ServerEnded(false)
}

// endPod ends it, and with it what was deleted besides.
func (w *world) endPod(in *instance) {
	w.endMysqld(in)
	in.unfit = in.unfit && in.pod.Current
	in.pod, in.m = core.Pod{}, manager{}
	switch {
	case in.doomed == allDoomed && !slices.Contains(w.cluster.Status.InstanceNames, in.name):
		w.remember(in)
		w.all = slices.DeleteFunc(w.all, func(other *instance) bool { return other == in })
	case in.doomed != podDoomed || in.vol.Deleting || !in.vol.Exists: // a status of before may name who is removed
		w.empty(in)
	}
}

// empty leaves the name of an instance whose Pod and volume are gone.
func (w *world) empty(in *instance) {
	w.remember(in)
	*in = instance{name: in.name, ordinal: in.ordinal, data: core.DataEmpty, given: in.given}
}

// cut has an instance reach those of one part of the network alone, and neither operator nor
// API server.
func (in *instance) cut(part int) { in.part, in.deaf, in.blind = part, true, true }

// heal ends that.
func (in *instance) heal() { in.part, in.deaf, in.blind = 0, false, false }

// deletePod asks an instance to stop, which takes its time.
func (w *world) deletePod(name string, doomed doom) {
	in := w.get(name)
	in.doomed = max(in.doomed, doomed)
	if !in.runs() {
		w.endPod(in)
		return
	}
	in.pod.Terminating, in.pod.Grace = true, 30*time.Second
	in.vol.Deleting = in.vol.Deleting || in.doomed != podDoomed
}

// doom is what goes with a Pod that was deleted.
type doom int

const (
	podDoomed doom = iota
	dataDoomed
	allDoomed
)

func (w *world) clone(in, donor *instance) bool {
	in.m.donor = ""
	if donor == nil || !donor.answers() || donor.part != in.part || donor.data != core.DataPopulated ||
		!core.CanClone(donor.version, in.version) {
		return false
	}
	in.data, in.executed, in.content = core.DataPopulated, donor.executed, maps.Clone(donor.content)
	in.given = true
	in.log, in.dropped, in.purged = nil, 0, donor.executed
	return true
}

// ask reads what this instance holds first, and what the primary holds after that.
func (w *world) ask(in *instance, a agent.AskPrimary) bool {
	p := w.get(a.Instance)
	if p == nil || !p.pod.Exists || !p.answers() || p.part != in.part {
		in.m.askFailed = a.Instance + " does not answer"
		return false
	}
	in.m.askFailed = ""
	position := a.Answered(core.Report{Server: w.server(p), SeenEpoch: p.m.seen}, in.holds(), w.now)
	position.After(in.m.position)
	in.m.position = position
	return true
}

// bootstrap makes the group. What the Cluster says is read again.
func (w *world) bootstrap(in *instance, a agent.BootstrapGroup) bool {
	if in.blind {
		return false
	}
	w.hear(in)
	if d := agent.Decide(w.facts(in)); len(d.Actions) != 1 || d.Actions[0] != agent.Action(a) {
		return false
	}
	if in.taken {
		in.m.member.Tried("its port is taken", false, w.now)
		return false
	}
	w.made(in, a.Reboot)
	in.joined, w.remembered = true, nil
	if a.Reboot && !w.mut.keepsLineage {
		in.of.Recovery, in.of.Doubted = in.m.view.Epoch, false
	}
	w.become([]string{in.name})
	// The order to reboot it was given once more, and comes while the manager does not know yet that it is done.
	return true
}

func (w *world) join(in *instance) bool {
	why := w.refuses(in, in.m.view.Group.ExcludedOthers)
	if in.m.member.Tried(why, false, w.now); why != "" {
		return false
	}
	w.enter(in)
	return true
}

// enter makes an instance a member, which receives what it lacks, at once or in its own time:
// from a member that is online, so where none is, it does not become that either.
func (w *world) enter(in *instance) {
	online := func(name string) bool { return w.get(name).state == "" }
	if w.recovers() || !slices.ContainsFunc(w.view, online) {
		in.state = core.MemberRecovering
	}
	in.joined = true
	w.become(append(draft.Without(w.view, in.name), in.name))
	w.learn([]string{in.name})
}

// refuses says why mysqld cannot join the group; "" if it can. It looks for it at whoever
// is not excluded.
func (w *world) refuses(in *instance, excluded []string) string {
	switch {
	case !w.hasQuorum():
		return "there is no group"
	case in.unfit:
		return "mysqld refuses to join as it is set"
	case w.isMember(in.name):
		return "its former membership has not ended"
	case !slices.ContainsFunc(w.view, func(name string) bool {
		m := w.get(name)
		return m.joined && m.part == in.part && m.stale == nil && !slices.Contains(excluded, name) &&
			(m.admits(in) || w.mut.admits)
	}):
		return "no member answers"
	case !w.heldBy(w.view).Contains(in.holds()):
		return "it holds transactions that the group lacks"
	}
	return ""
}

// admits: the addresses that may speak with this member are those of which its manager
// told it; all, when it told none.
func (in *instance) admits(other *instance) bool {
	admitted := in.m.member.Admitted
	return admitted == "" || slices.Contains(strings.Split(admitted, ","), other.pod.Address)
}

// heldBy is what the named instances hold together.
func (w *world) heldBy(names []string) (held gtid.Set) {
	for _, name := range names {
		held = held.Union(w.get(name).holds())
	}
	return held
}

// discover: a member that was expelled learns it when it reaches the others again, unless it
// has a majority of its own. mysqld tries to come back by itself, unless its manager keeps
// it from that.
func (w *world) discover() {
	for _, in := range w.all {
		if in.stale == nil || !in.up || w.says(in).HasQuorum() ||
			!slices.ContainsFunc(w.view, func(name string) bool {
				m := w.get(name)
				return m.joined &&
					m.part == in.part
			}) {
			continue
		}
		in.stale, in.joined, in.state = nil, false, core.MemberError
	}
	for _, in := range w.all {
		if in.state == core.MemberError && in.up && (!in.m.member.RejoinHeld || w.mut.rejoins) && w.rejoins() &&
			w.refuses(in, nil) == "" {
			in.state = ""
			w.enter(in)
		}
	}
}

// see has a manager take note of what its mysqld says of its group.
func (w *world) see(in *instance) {
	in.noteError(w.now)
	if in.answers() {
		in.m.member.SeeView(w.says(in))
	}
}

// noteError has a manager note since when its member is in ERROR.
func (in *instance) noteError(now time.Time) {
	switch since := &in.m.member.ErrorSince; {
	case in.state != core.MemberError || !in.answers():
		*since = time.Time{}
	case since.IsZero():
		*since = now
	}
}
