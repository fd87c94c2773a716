package whatif

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

const (
	// mysqldStart and podStart are how long a start takes here. It is longer when
	// there is much to recover.
	mysqldStart = 2 * time.Second
	podStart    = 5 * time.Second
)

// withNeighbours checks the names, and adds who is on the same nodes when these are lost.
func (m *model) withNeighbours(lose []string, how How) ([]string, error) {
	var all []string
	var nodes []string
	for _, name := range lose {
		in := m.o.Instance(name)
		if in == nil {
			return nil, fmt.Errorf("cluster %s has no instance %s; it has: %s", m.o.Cluster.Name, name,
				strings.Join(m.names(), ", "))
		}
		if how == PodDeleted && !in.Pod.Known() {
			return nil, fmt.Errorf("nothing is known of the Pod of %s, and so not what follows when it is deleted",
				name)
		}
		if node, known := nodeOf(in); known && node != "" {
			nodes = append(nodes, node)
		}
	}
	for i := range m.o.Instances {
		in := &m.o.Instances[i]
		named := slices.Contains(lose, in.Name)
		node, known := nodeOf(in)
		if how == NodeLost && !known {
			m.assume("no other instance shares the node of %s, which is not known", in.Name)
		}
		if named || how == NodeLost && slices.Contains(nodes, node) {
			all = append(all, in.Name)
		}
		if !named && slices.Contains(all, in.Name) {
			m.assume("%s goes with its node %s", in.Name, node)
		}
	}
	return all, nil
}

// nodeOf is the node that an instance is on, "" for none, and whether that is known: by Kubernetes'
// word, or by its manager's where nothing is known of its Pod.
func nodeOf(in *core.Instance) (node string, known bool) {
	if in.Pod.Known() {
		return in.NodeName(), true
	}
	r, known := in.Report.Get()
	return r.Node, known
}

func (m *model) names() []string {
	var all []string
	for i := range m.o.Instances {
		all = append(all, m.o.Instances[i].Name)
	}
	return all
}

func (m *model) lose(name string, how How) {
	t := m.managers[name]
	switch {
	case !t.reachable && how != NodeLost:
		m.assume("%s already does not answer: nothing more can be learned from its loss", name)
	case how == NodeLost:
		m.loseNode(t)
	case how == MysqldDown:
		m.crash(t)
	case how == PodDeleted:
		m.terminate(t)
	}
}

// loseNode loses all packets of an instance's node, so that everybody has to notice by silence.
func (m *model) loseNode(t *manager) {
	t.dead = true
	if t.reachable {
		m.at(core.CutAfter, "the operator gives up the manager of "+t.name+" after "+core.CutAfter.String()+
			" of silence", func() { t.reachable = false })
	}
	if m.followed(t.name) {
		m.at(core.SilentAfter, "the replicas hear nothing from "+t.name+" for "+core.SilentAfter.String(),
			func() { m.silentSource(t.name) })
	}
}

// crash ends the instance's mysqld. Its manager knows at once, and so do the peers of its
// connections. The manager of a primary waits for the operator's word before it starts mysqld.
func (m *model) crash(t *manager) {
	if t.report.State != core.Running {
		return
	}
	server, was := t.report.Server, t.report.WritableEpoch
	t.report.State, t.report.Reason, t.report.Message = core.Stopped, core.InstanceMysqldCrashed,
		"mysqld ended by signal killed"
	t.report.Server, t.report.WritableEpoch = nil, 0
	m.lostSource(t.name)
	if was == 0 {
		m.start(t, server)
		return
	}
	m.when(agent.VerdictWait, "the manager of "+t.name+" waits "+agent.VerdictWait.String()+" for the operator's "+
		"word before it starts mysqld",
		func() bool { return t.restart != nil }, func() { run(t.restart) })
	t.restart = func() { m.start(t, server) }
	t.rejoin = t.restart
}

// start lets mysqld answer again, read-only.
func (m *model) start(t *manager, server *core.Server) {
	t.restart, t.rejoin = nil, nil
	t.report.State, t.report.Reason, t.report.Message = core.Recovering, "", ""
	m.at(mysqldStart, "mysqld of "+t.name+" starts", func() {
		m.assume("mysqld needs %s to start; a long recovery needs longer", mysqldStart)
		m.answer(t, server)
	})
}

// answer lets mysqld run with the data that it had, read-only, and try to receive. A nil server
// has nothing to run with.
func (m *model) answer(t *manager, server *core.Server) {
	if server == nil {
		return
	}
	t.report.State, t.report.Server = core.Running, own(core.Report{Server: server}).Server
	t.report.Server.SuperReadOnly = true
	if rep := t.report.Server.Replication; rep != nil {
		rep.IOConnecting = rep.IOConnecting || rep.IORunning
		rep.IORunning = false
	}
}

// terminate asks the instance's manager to stop. A primary hands over before it does, unless it is
// alone.
func (m *model) terminate(t *manager) {
	in := m.o.Instance(t.name)
	pod, known := in.Pod.Get()
	if !known || !pod.Exists {
		return
	}
	pod.Terminating, t.report.Terminating = true, true
	in.Pod = core.Known(pod, m.o.Now, m.o.Now)
	wait, why := mysqldStart, "mysqld of "+t.name+" stops"
	if t.report.TakesWrites() && len(m.o.Instances) > 1 {
		wait, why = agent.SwitchoverWait, t.name+" waits "+agent.SwitchoverWait.String()+
			" for the operator to begin a hand-over before it stops"
	}
	m.when(wait, why, func() bool {
		op := m.o.Cluster.Status.Operation
		return op == nil || op.From != t.name
	}, func() { m.endPod(t) })
}

// endPod lets the kubelet say that all in the Pod has ended. The Pod is recreated on its volume
// when the operator asks for it.
func (m *model) endPod(t *manager) {
	in := m.o.Instance(t.name)
	pod, known := in.Pod.Get()
	if !known {
		return
	}
	in.EndedPods = append(slices.Clone(in.EndedPods), pod.UID)
	server := t.report.Server
	t.report.State, t.report.Server, t.report.WritableEpoch = core.Stopped, nil, 0
	m.hearAll()
	t.reachable = false
	in.Pod = core.Known(core.Pod{}, m.o.Now, m.o.Now)
	m.lostSource(t.name)
	t.pod = func(awaited string) {
		m.at(podStart, "the new Pod of "+t.name+" starts", func() {
			m.assume("a new Pod needs %s to start, on the same node", podStart)
			next := core.Pod{Exists: true, UID: pod.UID + "-next", Node: pod.Node, Awaited: awaited, Ready: true,
				Current: true, Role: pod.Role, Routable: pod.Routable}
			in.Pod = core.Known(next, m.o.Now, m.o.Now)
			t.reachable, t.report.Terminating, t.report.PodUID = true, false, next.UID
			m.answer(t, server)
		})
	}
}

// followed reports whether an instance receives from the source.
func (m *model) followed(source string) bool {
	for _, t := range m.managers {
		if m.receives(t, source) {
			return true
		}
	}
	return false
}

// silentSource lets those who receive from the source hear nothing more. That their connection is
// broken they learn later.
func (m *model) silentSource(source string) {
	for _, t := range m.managers {
		if m.receives(t, source) {
			t.report.Server.Replication.Silent = true
		}
	}
}

// lostSource breaks the connections of those who receive from the source. They try in vain from
// now on, and as its replicas they acknowledge nothing more.
func (m *model) lostSource(source string) {
	for _, t := range m.managers {
		if m.receives(t, source) {
			t.report.Server.Replication.IORunning, t.report.Server.Replication.IOConnecting = false, true
			t.report.Server.Replication.IOError = "error reconnecting to source"
		}
	}
}
