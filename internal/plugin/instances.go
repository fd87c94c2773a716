package plugin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/layout"
)

// noPod is the state of an instance whose Pod does not exist.
const noPod = "NoPod"

// instanceOf begins with what the Cluster's status says and puts the Pod's and
// the instance's own word over it.
func instanceOf(f *Facts, name string) Instance {
	in := Instance{Name: name, State: "Unknown"}
	message := ""
	for _, r := range f.Cluster.Status.InstancesReported {
		if r.Name == name {
			in.Role, in.State, in.Ready, in.Version, in.Node = r.Role, r.State, r.Ready, r.Version, r.Node
			message = r.Message
		}
	}
	if g := f.Cluster.Status.GroupReplication; g != nil {
		for _, m := range g.Members {
			if m.Instance == name {
				in.Member = m.State
			}
		}
	}
	if f.Pods != nil {
		in.fromPod(f.Pods[name])
	}
	if r := f.live(name); r != nil {
		message = r.Message
		in.fromReport(f, r)
	}
	if message != "" {
		in.Notes = append([]string{message}, in.Notes...)
	}
	in.Stale = !in.Live && f.Live[name].Problem != ""
	if slices.Contains(f.Cluster.Status.FencedInstances, name) {
		in.Role = "fenced"
		if in.State != string(core.Fenced) {
			in.note("%s", topologyOf(f.Cluster).fencing().pending)
		}
	}
	if slices.Contains(f.Cluster.Status.DivergedInstances, name) {
		in.Role = "diverged"
	}
	if in.Role == "diverged" && in.ErrantSet == "" {
		in.note("holds transactions that the primary does not have; kept out of every Service")
	}
	if slices.Contains(f.Cluster.Status.ReplicationBrokenInstances, name) && !in.Live {
		in.note("replication stopped with an error")
	}
	return in
}

func (in *Instance) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(in.Notes, text) {
		in.Notes = append(in.Notes, text)
	}
}

func (in *Instance) fromPod(pod *corev1.Pod) {
	if pod == nil {
		in.Ready, in.State, in.Role = false, noPod, ""
		return
	}
	in.Node = cmp.Or(pod.Spec.NodeName, in.Node)
	restarts := 0
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name != layout.Container {
			continue
		}
		restarts = int(s.RestartCount)
		in.Ready = s.Ready
		if last := s.LastTerminationState.Terminated; last != nil {
			in.note("its container ended last with %s (exit code %d)", cmp.Or(last.Reason, "no reason"), last.ExitCode)
		}
	}
	in.Restarts = &restarts
	switch {
	case pod.DeletionTimestamp == nil:
	case len(pod.Finalizers) > 0: // kubectl describe does not show them
		in.note("its Pod is being deleted, and is not removed before its metadata.finalizers are: %s",
			strings.Join(pod.Finalizers, ", "))
	default:
		in.note("its Pod is being deleted")
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			in.note("no node takes it: %s", c.Message)
		}
	}
}

func (in *Instance) fromReport(f *Facts, r *core.Report) {
	in.Live, in.State, in.Version, in.Node = true, string(r.State), cmp.Or(r.Version, in.Version),
		cmp.Or(r.Node, in.Node)
	if in.Restarts != nil {
		total := *in.Restarts + r.Restarts
		in.Restarts = &total
	}
	if r.Restore != nil && r.State == core.Restoring {
		in.Restored = percentOf(r.Restore)
	}
	if r.Clone != nil && r.State == core.Cloning {
		in.Clone = &Clone{Donor: core.InstanceIn(r.Clone.Donor), Stage: r.Clone.Stage, Percent: r.Clone.Percent}
	}
	if r.Clone != nil && r.Clone.Error != "" {
		in.note("the clone from %s failed: %s", core.InstanceIn(r.Clone.Donor), r.Clone.Error)
	}
	if r.NeedsReclone {
		in.note("the primary has purged what this instance lacks: it must be cloned again")
	}
	if r.Server != nil && r.Data == core.DataPopulated {
		n := r.Server.Holds().Count()
		in.Holds = &n
	}
	topologyOf(f.Cluster).place(in, f, r)
	if r.Server != nil && in.Role != v1alpha1.RolePrimary {
		in.compare(f, r)
	}
}

// fromReplication keeps lag unknown while nothing is received: a replica that
// applied all it has does not know what it misses.
func (in *Instance) fromReplication(r *core.Replication) {
	if r == nil {
		return
	}
	in.Source = core.InstanceIn(r.SourceHost)
	if r.IORunning && r.SQLRunning {
		in.Lag = &r.LagSeconds
	}
	switch {
	case r.IORunning:
	case r.IOError != "":
		in.note("does not receive from %s: %s", in.Source, r.IOError)
	case r.IOConnecting:
		in.note("is connecting to %s", in.Source)
	default:
		in.note("does not receive: its IO thread is stopped")
	}
	switch {
	case r.SQLRunning:
	case r.SQLError != "":
		in.note("does not apply what it received: %s", r.SQLError)
	default:
		in.note("does not apply: its SQL thread is stopped")
	}
}

// compare holds an instance against the primary, when both answered.
func (in *Instance) compare(f *Facts, r *core.Report) {
	if r.Data != core.DataPopulated {
		return
	}
	if p := f.live(f.holder()); p != nil && p.Server != nil {
		n := p.Server.Executed.Subtract(r.Server.Executed).Count()
		in.Lacks = &n
	}
	if f.holder() == in.Name {
		return
	}
	errant := r.Errant // what it found itself, before it would have followed
	if f.Reference != nil && f.Reference.Server != nil {
		errant = errantOf(f.Cluster, r, f.Reference.Server)
	} else if errant.IsEmpty() {
		return
	}
	n := errant.Count()
	in.Errant = &n
	if n > 0 {
		in.ErrantSet = errant.Abbreviate(10)
		in.note("transactions that %s does not have: %s", f.holder(), in.ErrantSet)
		in.dateErrant(r.ErrantTimes)
	}
}

// dateErrant tells when the transactions that the primary lacks were committed.
func (in *Instance) dateErrant(t *core.Times) {
	if in.ErrantTimes = t; t == nil {
		return
	}
	const layout = "2006-01-02 15:04:05 MST"
	text := "they were committed at " + t.First.Format(layout)
	if t.Last.After(t.First) {
		text = fmt.Sprintf("they were committed from %s to %s", t.First.Format(layout), t.Last.Format(layout))
	}
	if t.Unknown > 0 {
		text += fmt.Sprintf(" (not known of %d of them)", t.Unknown)
	}
	in.note("%s", text)
}

// errantOf leaves out what proves nothing. What an instance has found itself counts.
func errantOf(c *v1alpha1.Cluster, r *core.Report, primary *core.Server) gtid.Set {
	return r.Server.Executed.Subtract(primary.Executed).Subtract(topologyOf(c).unproven(c, primary)).Union(r.Errant)
}

// liveProblem is one line on what is not known and why.
func liveProblem(f *Facts, all []Instance) string {
	if f.LiveProblem != "" {
		return f.LiveProblem
	}
	var silent []string
	why := ""
	for _, in := range all {
		// Of one without a Pod the table says so.
		if p := f.Live[in.Name].Problem; p != "" && in.State != noPod {
			silent = append(silent, in.Name)
			why = cmp.Or(why, p)
		}
	}
	if len(silent) == 0 {
		return ""
	}
	return fmt.Sprintf("%s could not be asked: %s", strings.Join(silent, ", "), why)
}
