package plugin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/observation"
)

const (
	// operationIsLong is when somebody should look at what an operation waits for.
	operationIsLong = time.Minute
	findOperator    = "kubectl get pods -A -l app.kubernetes.io/name=cnmsql,app.kubernetes.io/component=operator"
	mendIt          = "fix what is said above; the operator then continues by itself, if it runs: " + findOperator
)

// advise tells what the reader should do, the most urgent first.
func advise(f *Facts, r *Report) []string {
	var out []string
	for _, rule := range []func(*Facts, *Report) []string{
		adviseOperator, adviseBlocked, adviseUnreachable, adviseFenced, adviseHeld, adviseInstances, adviseDiverged,
		adviseBroken, adviseWaiting, adviseSlow, adviseFailed, adviseParameters, adviseArchive, adviseLastBackup,
		adviseVerified,
	} {
		for _, line := range rule(f, r) {
			if !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	return out
}

// adviseOperator returns advice when what is shown may be old or does not fit, because it is only
// as fresh as the operator is alive: the operator has not looked at the Cluster or at its last
// change, its primary does not answer, or what is seen contradicts the last phase. It returns nil
// when nothing of that is seen.
func adviseOperator(f *Facts, r *Report) []string {
	s := &f.Cluster.Status
	switch {
	case s.Phase == "":
		return []string{"the operator has not processed this Cluster; check that it runs: " + findOperator}
	case s.ObservedGeneration != 0 && s.ObservedGeneration < f.Cluster.Generation:
		return []string{"the operator has not processed the last change of the spec, or a volume claim is not " +
			"changed yet; if that lasts, check its events (ActionFailed), and that the operator runs: " + findOperator}
	case isStale(f):
		return []string{
			"the operator's last report may be old, because the primary does not answer; check that the operator " +
				"runs: " +
				findOperator,
			fmt.Sprintf("see why %s cannot be reached (kubectl get nodes; kubectl describe pod %s -n %s)", f.holder(),
				f.holder(), f.Cluster.Namespace),
		}
	}
	if r.Doubt != "" {
		return []string{fmt.Sprintf("the operator last reported %s, %s, which contradicts what is seen: %s. If it "+
			"still does in some seconds, no operator is working: nothing is repaired, and no failover begins. Check "+
			"that the operator runs: %s",
			s.Phase, s.Diagnosis, r.Doubt, findOperator)}
	}
	return nil
}

// doubtOf is what contradicts the operator's last word; "" when nothing does.
func doubtOf(f *Facts, r *Report) string {
	well := core.Diagnosis(f.Cluster.Status.Diagnosis).IsWell() && f.Cluster.DeletionTimestamp == nil
	if well && r.Writable == WritableNo {
		return r.WritableBecause
	}
	return unseen(f)
}

// oddAfter is how long an instance may not be ready before an operator that runs has said so.
const oddAfter = 15 * time.Second

// unseen is what an operator that runs would not call Healthy; "" when there is nothing.
func unseen(f *Facts) string {
	if f.Cluster.Status.Phase != string(core.PhaseHealthy) || f.Pods == nil || f.Cluster.DeletionTimestamp != nil {
		return ""
	}
	var odd []string
	for _, name := range f.Cluster.Status.InstanceNames {
		switch pod := f.Pods[name]; {
		case slices.Contains(f.Cluster.Status.FencedInstances, name): // it is not ready for good
		case pod == nil:
			odd = append(odd, name+" has no Pod")
		case f.notReadySince(pod) >= oddAfter:
			odd = append(odd, fmt.Sprintf("%s is not ready for %s", name, f.notReadySince(pod).Round(time.Second)))
		}
	}
	return strings.Join(odd, ", ")
}

// notReadySince is for how long Kubernetes calls a Pod not ready; 0 while it is, or where that is
// not said.
func (f *Facts) notReadySince(pod *corev1.Pod) time.Duration {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse {
			return f.Now.Sub(c.LastTransitionTime.Time)
		}
	}
	return 0
}

// isStale reports whether the operator's last diagnosis is that the primary is well, and the
// primary does not answer.
func isStale(f *Facts) bool {
	return f.Live[f.holder()].Problem != "" && core.Diagnosis(f.Cluster.Status.Diagnosis).IsWell()
}

func adviseBlocked(f *Facts, r *Report) []string {
	switch {
	case r.Phase != string(core.PhaseBlocked):
		return nil
	case r.Diagnosis == string(core.PrimaryFenced):
		return nil // adviseFenced
	case f.Cluster.Status.EstablishedAt == nil && isOfBootstrap(r.Blocked):
		return []string{adviseAnew(r)}
	case f.Cluster.Status.EstablishedAt == nil && r.Blocked == core.InstanceRestoreFailed:
		// A Secret, the store or spec.externalClusters can be corrected, and it is tried again.
		return []string{mendIt, adviseAnew(r)}
	}
	return topologyOf(f.Cluster).adviseBlocked(f, r)
}

// isOfBootstrap reports whether the first data could not be made: what names it cannot be changed.
func isOfBootstrap(reason core.Reason) bool {
	return reason == core.InstanceStartFailed || reason == core.InstancePostInitSQLFailed
}

// adviseAnew is for a Cluster that cannot begin as its manifest says.
func adviseAnew(r *Report) string {
	return fmt.Sprintf("if what is said above comes of spec.bootstrap, which cannot be changed: delete this Cluster, "+
		"which has no data yet (kubectl delete clusters.%s %[2]s -n %[3]s), and create it again with a corrected "+
		"manifest. Before you use the same name again, delete its PersistentVolumeClaims, if they stay: kubectl get "+
		"pvc -n %[3]s -l %[4]s=%[2]s", v1alpha1.GroupVersion.Group, r.Name, r.Namespace, v1alpha1.LabelCluster)
}

// adviseBlocked is for a group that the operator cannot help by itself.
func (group) adviseBlocked(f *Facts, r *Report) []string {
	var out []string
	if d := core.Diagnosis(r.Diagnosis); d != core.GroupQuorumLost && d != core.GroupUnknown {
		return []string{mendIt}
	}
	recover := fmt.Sprintf("kubectl cnmsql group recover %s -n %s", r.Name, r.Namespace)
	for _, m := range r.Group.Members {
		if !m.Reachable {
			out = append(out, fmt.Sprintf("see why %s does not answer: kubectl describe pod %s -n %s", m.Name,
				m.Name, r.Namespace))
		}
	}
	if r.Diagnosis == string(core.GroupUnknown) && mayWork(r.Group) {
		return append([]string{"the group may be working. Check whether the operator reaches the Pods (" +
			findOperator +
			"). Delete nothing, and recover nothing until you know that the instances that do not answer are dead: " +
			"docs/runbooks.md#nobody-knows-how-a-group-is"}, out...)
	}
	if len(out) == 0 && r.Group.Online == 0 {
		return []string{adviseOutage(f.Cluster) + " (the command explains the effect, and asks for confirmation): " +
			recover}
	}
	if r.Group.Online == 0 && recoversByItself(f.Cluster) {
		out = append(out, "when all answer, and nothing else is in the way, the operator reboots the group by itself "+
			"(spec.replication.groupReplication.recoverTotalOutage)")
	}
	return append(out, "members that reconnect restore the quorum by themselves; members that were restarted cannot "+
		"join a group without a quorum",
		"only if they do not come back (the command shows what may be lost, and asks for confirmation): "+recover)
}

// mayWork reports whether the members that do not say that they are out of the group could be its majority.
func mayWork(g *Group) bool {
	out := 0
	for _, m := range g.Members {
		isIn := m.State == string(core.MemberOnline) || m.State == string(core.MemberRecovering)
		if m.Reachable && !isIn {
			out++
		}
	}
	return g.Size-out >= g.Majority
}

// adviseOutage returns the advice for a group in which nobody is, while all instances answer and
// are there to recreate it.
func adviseOutage(c *v1alpha1.Cluster) string {
	const so = "all instances answer, and none is in the group: "
	if recoversByItself(c) {
		return so +
			"the text above says for which instance the operator waits, or why it leaves the decision to you; to " +
			"request the reboot"
	}
	return so + "the operator reboots it only at your request"
}

// recoversByItself reports whether the operator waits for no human after a total outage.
func recoversByItself(c *v1alpha1.Cluster) bool {
	g := observation.GroupWish(c)
	return g != nil && g.RecoverOutage
}

// adviseOverride is the last resort.
func adviseOverride(r *Report) string {
	return fmt.Sprintf("only if nothing else helps and writes may be lost (the command shows which, and asks for "+
		"confirmation): kubectl cnmsql failover %s --to INSTANCE --accept-data-loss -n %s", r.Name, r.Namespace)
}

// adviseFenced returns how to end each fence, because whoever fences an instance may have
// forgotten it.
func adviseFenced(f *Facts, r *Report) []string {
	var out []string
	for _, name := range r.Fenced {
		what := name + " is fenced"
		if name == f.holder() {
			what = name + topologyOf(f.Cluster).fencing().standing
		}
		out = append(out, fmt.Sprintf("%s; if the person who fenced it agrees: kubectl cnmsql fence off %s %s -n %s",
			what,
			r.Name, name, r.Namespace))
	}
	return out
}

// adviseUnreachable is for a primary of which nothing is known, and nothing
// is being done about it.
func adviseUnreachable(f *Facts, r *Report) []string {
	if r.Phase == string(core.PhaseBlocked) || f.topology().ElectsByItself() ||
		!core.Diagnosis(r.Diagnosis).IsUnreachable() {
		return nil
	}
	look := fmt.Sprintf("see why %s cannot be reached: kubectl describe pod %s -n %s", f.holder(), f.holder(),
		r.Namespace)
	if r.Diagnosis == string(core.PrimaryUnreachableButReplicasStream) { // its mysqld lives, and serves clients
		return []string{look}
	}
	return []string{look, adviseNode(f)}
}

func adviseNode(f *Facts) string {
	node := "NODE"
	if p := f.Cluster.Status.Promotion; p != nil {
		node = cmp.Or(p.Node, node)
	}
	return fmt.Sprintf("only if node %s is powered off (NotReady is not enough): kubectl taint node %s "+
		"node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", node, node)
}

func adviseInstances(f *Facts, r *Report) []string {
	var out []string
	for _, in := range r.Instances {
		switch {
		case in.State == string(core.Failed) || in.State == string(core.Hung):
			out = append(out, fmt.Sprintf("see what %s says: kubectl logs %s -c %s -n %s --tail 50", in.Name, in.Name,
				layout.Container, r.Namespace))
		case f.stuck(in.Name):
			out = append(out, fmt.Sprintf("see why %s does not start: kubectl describe pod %s -n %s", in.Name,
				in.Name, r.Namespace))
		case in.State == "Unknown" && f.runs(in.Name) && in.Name != f.holder():
			out = append(out, fmt.Sprintf("see why the manager of %s does not answer: kubectl describe pod %s -n %s",
				in.Name, in.Name, r.Namespace))
		}
	}
	return out
}

func (f *Facts) runs(name string) bool {
	pod := f.Pods[name]
	return pod != nil && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning
}

// stuck reports whether the kubelet or the scheduler says that the instance's Pod cannot start as
// it is. A Pod that is not there, or that is merely starting, is not stuck.
func (f *Facts) stuck(name string) bool {
	pod := f.Pods[name]
	if pod == nil {
		return false
	}
	starting := []string{"", "PodInitializing", "ContainerCreating"}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := s.State.Waiting; w != nil && !slices.Contains(starting, w.Reason) {
			return true
		}
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	})
}

func adviseDiverged(f *Facts, r *Report) []string {
	var out []string
	for _, name := range f.Cluster.Status.DivergedInstances {
		text := fmt.Sprintf("decide whether the transactions that only %s holds matter (look: kubectl "+
			"cnmsql mysql %s --instance %s -n %s); ", name, r.Name, name, r.Namespace)
		switch {
		case hasLost(r):
			text += "keep its data until you have decided which copy is right"
		case nobodyWrites(r):
			text += "keep its data while no instance is known to take writes, because that copy may be needed"
		default:
			text += reclone("to give them up and copy it again", r, name)
		}
		out = append(out, text)
	}
	return out
}

func adviseBroken(f *Facts, r *Report) []string {
	var out []string
	for _, name := range f.Cluster.Status.ReplicationBrokenInstances {
		switch text := "fix what stopped replication of " + name; {
		case slices.Contains(f.Cluster.Status.DivergedInstances, name), f.copyHinders(name):
		case nobodyWrites(r), hasLost(r):
			out = append(out, text)
		default:
			out = append(out, text+"; or, "+reclone("to copy it again", r, name))
		}
	}
	return out
}

// copyHinders reports whether a copy of the instance's data stops its applier, which goes on by itself after that.
func (f *Facts) copyHinders(name string) bool {
	r := f.live(name)
	return r != nil && r.Server != nil && r.Server.Replication != nil && r.Server.Replication.CopyHinders
}

// hasLost reports whether the primary lacks what it once committed: each replica's copy may be the right one.
func hasLost(r *Report) bool { return r.Diagnosis == string(core.PrimaryLostTransactions) }

// nobodyWrites reports whether no instance is known to take writes: each copy may be the one to go on with.
func nobodyWrites(r *Report) bool { return r.Writable == WritableNo || r.Writable == WritableUnknown }

func reclone(aim string, r *Report, instance string) string {
	return fmt.Sprintf("%s: kubectl cnmsql reinit %s %s -n %s", aim, r.Name, instance, r.Namespace)
}

func adviseWaiting(f *Facts, r *Report) []string {
	switch primary := f.live(r.Primary); {
	case r.Writable != WritableWaiting:
		return nil
	case primary != nil && primary.LacksSpace():
		return []string{fmt.Sprintf("raise spec.storage.size (kubectl edit cluster %s -n %s); what else makes space, "+
			"and what hangs until there is some: docs/runbooks.md#the-disk-is-full", r.Name, r.Namespace)}
	case !f.topology().UsesSemiSync():
		return nil
	}
	if refused := f.refusedLogin(); len(refused) > 0 {
		return []string{fmt.Sprintf("%s does not let %s log in: its manager makes the replication account as it "+
			"should be within half a minute. If it does not, its log says why (kubectl logs %s -n %s), and you must "+
			"repair the accounts: docs/troubleshooting.md; a lower spec.mysql.semiSync.dataDurability would not "+
			"attach them",
			r.Primary, strings.Join(refused, ", "), r.Primary, r.Namespace)}
	}
	lower := "spec.mysql.semiSync.dataDurability"
	if minimumHinders(&f.Cluster.Spec) {
		lower = "spec.minSyncReplicas or " + lower
	}
	return []string{"bring replicas back, or lower " + lower + " knowing that acknowledged writes may then be lost"}
}

// refusedLogin are the instances that say that the primary refuses the account they replicate by.
func (f *Facts) refusedLogin() (out []string) {
	for _, name := range f.Cluster.Status.InstanceNames {
		if r := f.live(name); r != nil && r.Server != nil && r.Server.Replication != nil &&
			!r.Server.Replication.IORunning && r.Server.Replication.Refused == core.RefusedLogin {
			out = append(out, name)
		}
	}
	return out
}

// minimumHinders reports whether commits would wait for fewer replicas without spec.minSyncReplicas. Under quorum
// that is so only where it is more than the quorum itself.
func minimumHinders(spec *v1alpha1.ClusterSpec) bool {
	wish := observation.Durability(spec)
	least := wish
	least.Min = 0
	return least.Wished(int(spec.Instances)) < wish.Wished(int(spec.Instances))
}

// adviseHeld returns what to do when an instance's claim is being deleted or is gone, and its Pod is kept for the
// data: the cluster may be Healthy meanwhile, and loses them when somebody stops that Pod.
func adviseHeld(_ *Facts, r *Report) []string {
	if !slices.Contains(r.Notices, core.ReasonVolumeHeld) {
		return nil
	}
	return []string{"do what is said above for each volume that is being deleted: its data is gone when the Pod " +
		"stops, and it may be the last copy; docs/troubleshooting.md#a-volume-is-being-deleted-and-stays"}
}

// adviseFailed returns what to do when Kubernetes, or an instance, refused what was to be done.
// The operator tries it again, but that does not help against a wrong spec.
func adviseFailed(_ *Facts, r *Report) []string {
	if !slices.Contains(r.Notices, core.ReasonActionFailed) {
		return nil
	}
	return []string{"see why it could not be done, and correct that; the operator tries it again by itself"}
}

// adviseParameters returns what to do when mysqld refuses parameters of the spec: nobody is restarted for it.
func adviseParameters(_ *Facts, r *Report) []string {
	if !slices.Contains(r.Notices, core.RefusalParameters) {
		return nil
	}
	return []string{"correct spec.mysql.parameters: mysqld refuses them, and no further instance is restarted for them"}
}
