package plugin

import (
	"fmt"
	"slices"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/whatif"
)

// async is a primary, and replicas that follow it.
type async struct{}

func (async) writable(f *Facts) (Writable, string) {
	p := f.Cluster.Status.Promotion
	if p == nil {
		return WritableNo, "no primary was chosen yet"
	}
	r := f.live(p.Instance)
	switch {
	case r == nil:
		return writableByDiagnosis(f, p.Instance)
	case !r.IsPrimaryIn(p.Epoch):
		return WritableNo, fmt.Sprintf("%s is %s and does not accept writes", p.Instance, describeState(r))
	case r.Follows != "":
		return WritableNo, fmt.Sprintf("%s follows %s, and takes no writes", p.Instance, r.Follows)
	case hangs(r):
		return WritableUnknown, p.Instance + hangsText
	case r.LacksSpace():
		return WritableWaiting, p.Instance + fullText
	case r.Server != nil && r.Server.SemiSync.Starves(r.Server.SemiSync.Clients):
		return WritableWaiting, fmt.Sprintf("%s accepts writes, but each commit waits for %s, and %s attached",
			p.Instance, core.Acknowledgements(r.Server.SemiSync.Acks), isAre(r.Server.SemiSync.Clients, "replica"))
	}
	return f.routed(p.Instance, fmt.Sprintf("%s accepts writes (epoch %d)", p.Instance, p.Epoch))
}

func (async) place(in *Instance, f *Facts, r *core.Report) {
	in.Role = ""
	switch p := f.Cluster.Status.Promotion; {
	case p != nil && p.Instance == in.Name && r.IsPrimaryIn(p.Epoch):
		in.Role = v1alpha1.RolePrimary
	case r.Server != nil && r.Server.Replication != nil:
		in.Role = v1alpha1.RoleReplica
	}
	if r.TakesWrites() && in.Role != v1alpha1.RolePrimary {
		in.note("accepts writes in epoch %d, which is not the present one", r.WritableEpoch)
	}
	if r.Server != nil && (in.Role != v1alpha1.RolePrimary || r.Follows != "") {
		in.fromReplication(r.Server.Replication)
	}
	if in.Role == v1alpha1.RolePrimary && r.Follows != "" {
		in.Source = r.Follows
	}
}

// A replica executes a transaction while the primary still waits for acknowledgements
// of it. When the primary has really lost some of its own, the operator says so.
func (async) unproven(_ *v1alpha1.Cluster, primary *core.Server) gtid.Set {
	return allOf(primary.UUID)
}

func (async) takesPart(c *v1alpha1.Cluster, s *core.Server) bool {
	return s.Replication != nil && s.Replication.IORunning &&
		core.IsHostOf(s.Replication.SourceHost, holderOf(&c.Status))
}

func (async) fencing() fenceWords {
	return fenceWords{
		pending: "fenced by a human: its mysqld is being stopped or is stopped, its data is kept",
		primary: "Fencing it STOPS THE WRITES OF THE WHOLE CLUSTER: its mysqld is stopped, and no other instance is " +
			"promoted until it is unfenced.",
		question: "Stop all writes of %s? Type yes:",
		standing: ", the primary, is fenced: no instance takes writes, and the operator promotes none",
		on:       "its mysqld is being stopped, its data is kept, its Pod stays and shows 0/1 ready",
		off:      "its mysqld is being started",
	}
}

func (async) adviseBlocked(f *Facts, r *Report) []string {
	switch {
	case r.Diagnosis == string(core.PrimaryLostTransactions):
		return []string{"stop the application now: each new write reuses a lost GTID",
			"decide which copy is right: the text above says how to continue with either"}
	case r.Operation != nil && r.Operation.Step == string(core.StepProve):
		// Whether a node is to be tainted the operator says itself: it knows where that would be wrong.
		return []string{"do what is said above: the operator continues by itself as soon as there is a proof",
			adviseOverride(r)}
	case slices.Contains(core.PolicyRefusals(), r.Blocked):
		return []string{"raise the bound of spec.failoverPolicy that is named above, if what it guards against may " +
			"happen; the operator then continues immediately", adviseOverride(r)}
	case r.Operation != nil && r.Operation.Kind == string(core.OperationFailover):
		return []string{mendIt, adviseOverride(r)}
	default:
		return []string{mendIt}
	}
}

func (async) outcome(a whatif.Answer) string {
	switch {
	case a.Outcome == whatif.Promoted && a.Promoted == a.Primary:
		return fmt.Sprintf("%s itself may take writes again after %s (epoch %d)", a.Promoted, about(a.Seconds), a.Epoch)
	case a.Outcome == whatif.Promoted:
		return fmt.Sprintf("%s is promoted after %s (epoch %d), in the place of %s", a.Promoted,
			about(a.Seconds), a.Epoch, a.Primary)
	case a.Outcome == whatif.Continues && a.WritesHang:
		return fmt.Sprintf(
			"%s stays the primary, but WRITES HANG: no commit can be acknowledged until replicas are back", a.Promoted)
	case a.Outcome == whatif.Continues && slices.Contains(a.Lost, a.Primary):
		return fmt.Sprintf("nobody else is promoted: %s takes writes again after %s", a.Promoted, about(a.Seconds))
	case a.Outcome == whatif.Continues && a.WritesHung > 0:
		return fmt.Sprintf("%s stays the primary, but WRITES HANG for %s: no commit can be acknowledged until "+
			"replicas are back", a.Promoted, about(a.WritesHung))
	case a.Outcome == whatif.Continues:
		return fmt.Sprintf("%s stays the primary and takes writes", a.Promoted)
	case a.Outcome == whatif.Undecided:
		return "the simulated time ended before a decision"
	case !slices.Contains(a.Lost, a.Primary):
		return fmt.Sprintf("NOBODY is promoted%s; whether %s accepts writes is unknown, before and after",
			refusalText(a.Refusal), a.Primary)
	default:
		return fmt.Sprintf("NOBODY is promoted in the place of %s%s", a.Primary, refusalText(a.Refusal))
	}
}

func (async) opening() string { return " takes the Lease and becomes writable" }

func (async) promise(p page, r Report) {
	if r.Follows != nil {
		p.line("Follows", "%s", followsText(r.Follows))
		return
	}
	p.line("Durability", "%s", durabilityText(r.Durability))
}

func (async) columns() []string {
	return []string{"INSTANCE", "ROLE", "STATE", "READY", "LAG", "LACKS", "ERRANT", "SOURCE",
		"VERSION", "NODE", "RESTARTS"}
}

func (async) reference(r Report) string {
	if r.Promotion == nil {
		return ""
	}
	return r.Promotion.Instance
}

func (async) overridable(*v1alpha1.Cluster, string) error { return nil }
