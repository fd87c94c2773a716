package operator

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/tell"
)

// describe adds to a status what is for people and other controllers:
// conditions and what each instance says. Nothing is decided by it.
func describe(s *v1alpha1.ClusterStatus, c *v1alpha1.Cluster, o core.Observation, plan core.Plan) {
	s.ObservedGeneration = c.Generation
	s.LabelSelector = resources.InstanceSelector(c)
	s.SyncedReplicas, s.ErrantReplicas = syncedReplicas(o, plan.Status), int32(len(plan.Status.Diverged))
	s.InstancesReported = nil
	for i := range o.Instances {
		in := instanceStatus(&o.Instances[i], o.Cluster.Topology, plan.Status)
		s.InstancesReported = append(s.InstancesReported, in)
	}
	now := conditions(plan.Status, o.Cluster)
	for _, kind := range comeAndGo {
		if meta.FindStatusCondition(now, kind) == nil {
			meta.RemoveStatusCondition(&s.Conditions, kind)
		}
	}
	for _, cond := range now {
		cond.ObservedGeneration = c.Generation
		meta.SetStatusCondition(&s.Conditions, cond)
	}
}

// comeAndGo are the conditions, of those that say how the cluster is, which a status need not have.
var comeAndGo = []string{v1alpha1.ConditionSwitchoverReturned, v1alpha1.ConditionReconciling,
	v1alpha1.ConditionStalled, v1alpha1.ConditionDurable}

// syncedReplicas counts who is ready besides the primary. Who has diverged does not count,
// even while its Pod is still ready. Before there is a primary nobody is a replica.
func syncedReplicas(o core.Observation, s core.Status) int32 {
	var n int32
	for i := range o.Instances {
		in := &o.Instances[i]
		if s.CurrentPrimary == "" || in.Name == s.CurrentPrimary || slices.Contains(s.Diverged, in.Name) {
			continue
		}
		if pod, known := in.Pod.Get(); known && pod.Exists && pod.Ready && !pod.Terminating {
			n++
		}
	}
	return n
}

// maxSetText bounds what one instance's set may take of the Cluster object.
const maxSetText = 1024

// notePositions adds what the instances have executed to a status that is written
// anyway: these sets change with every transaction, and are no reason to write.
func notePositions(s *v1alpha1.ClusterStatus, o core.Observation) {
	sets := map[string]string{}
	for i := range o.Instances {
		in := &o.Instances[i]
		if set, known := in.LastExecuted.Get(); known {
			sets[in.Name] = set.Within(maxSetText)
		} else if before, there := s.GTIDExecutedByInstance[in.Name]; there {
			sets[in.Name] = before
		}
	}
	s.GTIDExecutedByInstance = sets
	s.GTIDExecutedUpdatedAt = &metav1.MicroTime{Time: o.Now.UTC().Truncate(time.Microsecond)}
}

func instanceStatus(in *core.Instance, of core.Topology, s core.Status) v1alpha1.InstanceStatus {
	out := v1alpha1.InstanceStatus{Name: in.Name, State: "Unknown"}
	if pod, known := in.Pod.Get(); known {
		out.Ready, out.Node = pod.Ready, pod.Node
		if pod.Waiting != nil {
			out.Reason, out.Message = string(pod.Waiting.Reason), pod.Waiting.String()
		}
	}
	r, known := in.Report.Get()
	if !known {
		out.Message = cmp.Or(out.Message, unreached(in))
		return out
	}
	out.State, out.Version = string(r.State), r.Version
	if r.Reason != "" {
		out.Reason = string(r.Reason)
	}
	if r.Message != "" {
		out.Message = r.Message
	}
	switch {
	case of.RunsGroup():
		out.Role = memberRole(s.Group, in.Name)
	case s.Promotion.IsUsedBy(in.Name, r):
		out.Role = v1alpha1.RolePrimary
	case r.Server != nil && r.Server.Replication != nil:
		out.Role = v1alpha1.RoleReplica
	}
	return out
}

// unreached is said of an instance whose Pod runs, as far as is known, and whose manager cannot be
// reached. Nobody waits for an answer of one that has not started yet.
func unreached(in *core.Instance) string {
	runs := in.Pod.Is(func(p core.Pod) bool { return p.Exists && !p.Terminated && !p.NeverStarted })
	if in.Unheard == "" || !runs {
		return ""
	}
	return "its manager cannot be reached" + in.WhyUnheard()
}

// memberRole is the role of an instance that is online in the group; "" where it is not, or where
// nothing has been seen of the group.
func memberRole(g *core.GroupStatus, instance string) string {
	if g == nil {
		return ""
	}
	for _, m := range g.Members {
		if m.Instance == instance && m.State == core.MemberOnline {
			return map[core.MemberRole]string{core.MemberPrimary: v1alpha1.RolePrimary,
				core.MemberSecondary: v1alpha1.RoleReplica}[m.Role]
		}
	}
	return ""
}

// nameOfReason is what the API server takes for the reason of a condition.
var nameOfReason = regexp.MustCompile("^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")

// refusalOrPhase names why something is not as it should be: the refusal that blocks the
// cluster, or its phase. The name may be Kubernetes' own, of which nothing is known.
func refusalOrPhase(s core.Status) string {
	if s.Blocked != nil && nameOfReason.MatchString(string(s.Blocked.Reason)) {
		return string(s.Blocked.Reason)
	}
	return string(s.Phase)
}

// conditions are those that say how the cluster is.
func conditions(s core.Status, c core.Cluster) []metav1.Condition {
	takesWrites := s.Diagnosis.EndsCommits()
	because, ready := refusalOrPhase(s), string(s.Phase)
	switch {
	case s.Diagnosis == core.PrimaryFollows:
		ready = string(s.Diagnosis)
	case !takesWrites:
		ready = because
	}
	available := s.State == core.StateHealthy || s.State == core.StateDegraded
	out := []metav1.Condition{
		condition(v1alpha1.ConditionReady, takesWrites, ready, s.Reason),
		condition(v1alpha1.ConditionProgressing, s.Operation != nil || s.Phase == core.PhaseProvisioning ||
			s.Phase == core.PhaseScaling || s.Phase == core.PhaseUpdating,
			string(s.Phase), s.Reason),
		condition(v1alpha1.ConditionDegraded, s.Phase == core.PhaseDegraded || s.Phase == core.PhaseBlocked ||
			s.Phase == core.PhaseFailover, because, s.Reason),
		condition(v1alpha1.ConditionAvailable, available, string(s.State), s.Reason),
		condition(v1alpha1.ConditionHealthy, s.State == core.StateHealthy, string(s.State), s.Reason),
		condition(v1alpha1.ConditionInitialized, !s.EstablishedAt.IsZero(), string(s.State), s.Reason),
	}
	if r := s.Return; r != nil {
		out = append(out, condition(v1alpha1.ConditionSwitchoverReturned, true, "TargetNotWritable",
			"the switchover to "+r.Target+" was given up: "+r.Why))
	}
	isAsWished := s.Phase == core.PhaseHealthy && s.State == core.StateHealthy && s.Operation == nil
	switch {
	case s.Phase == core.PhaseBlocked:
		out = append(out, condition(v1alpha1.ConditionStalled, true, because, s.Reason))
	case !isAsWished:
		out = append(out, condition(v1alpha1.ConditionReconciling, true, string(s.Phase), s.Reason))
	}
	if durable := durableCondition(s, c); durable != nil {
		out = append(out, *durable)
	}
	return out
}

// durableCondition tells what a failover may lose. It is nil where nothing can be told: in
// a group, of a single instance, and before there is a primary.
func durableCondition(s core.Status, c core.Cluster) *metav1.Condition {
	switch {
	case s.Durable != "":
		reason := map[core.DurableState]string{core.DurableYes: "Acknowledged",
			core.DurableNo: "TooFewAcknowledgements", core.DurableUnknown: "NotKnown"}[s.Durable]
		if s.CommitsHang {
			reason = v1alpha1.ReasonCommitsHang
		}
		return &metav1.Condition{Type: v1alpha1.ConditionDurable, Status: metav1.ConditionStatus(s.Durable),
			Reason: reason, Message: s.DurableMessage}
	case s.WaitsForNobody(c):
		return &metav1.Condition{Type: v1alpha1.ConditionDurable, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonAsynchronous,
			Message: "commits wait for no replica: a failover can lose the last acknowledged writes. " +
				"To prevent that, set spec.mysql.semiSync.enabled and dataDurability: quorum"}
	}
	return nil
}

func condition(name string, is bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: name, Status: status, Reason: reason, Message: message}
}

// sentenceLimit is how many bytes one sentence may take of a status. The API server refuses the whole
// status for one condition of more than 32 KiB, and etcd an object of some 1.5 MiB: the same sentence is
// in several places. Until the status is written nothing is done for the Cluster.
const sentenceLimit = 8 << 10

// shorten cuts all that is said in a status, wherever it is from, to what the API server takes.
func shorten(s *v1alpha1.ClusterStatus) {
	cut := func(sentence *string) { *sentence = tell.Within(sentenceLimit, *sentence) }
	cut(&s.PhaseReason)
	if s.Blocked != nil {
		cut(&s.Blocked.Message)
	}
	for i := range s.Notices {
		cut(&s.Notices[i].Message)
	}
	if s.SwitchoverReturn != nil {
		cut(&s.SwitchoverReturn.Reason)
	}
	for i := range s.InstancesReported {
		cut(&s.InstancesReported[i].Message)
	}
	for i := range s.Conditions {
		cut(&s.Conditions[i].Message)
	}
}

// noteImage notes the image of mysqld that the cluster runs: once all instances run it, so that
// another that was named and taken back, and may never have run, is not the one that is kept.
func noteImage(next *v1alpha1.Cluster, o core.Observation, defaultImage string) {
	runsElsewhere := func(in core.Instance) bool {
		return !in.Pod.Is(func(pod core.Pod) bool { return pod.Exists && pod.Current && pod.Ready })
	}
	if next.Status.EstablishedAt != nil && next.Status.Image != "" &&
		(len(o.Instances) == 0 || slices.ContainsFunc(o.Instances, runsElsewhere)) {
		return
	}
	next.Status.Image = resources.Image(next, defaultImage)
}
