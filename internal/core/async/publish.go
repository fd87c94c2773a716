package async

import (
	"fmt"
	"slices"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// publish puts the cluster's situation in words.
func (d *decision) publish() {
	slices.Sort(d.Status.InstanceNames)
	if d.Status.Diagnosis = d.diagnosis.name; d.followsServer() && d.Status.Diagnosis == core.PrimaryHealthy {
		d.Status.Diagnosis = core.PrimaryFollows
	}
	d.CountReady()
	d.Status.State = d.clusterState()
	problem, stops := d.problem()
	if p := d.Cluster.Problem; p != nil && d.Status.Operation == nil {
		d.Block(p.Reason, p.Message)
	}
	if stops {
		d.Block(core.RefusalProblem, problem)
	}
	d.Status.Phase = d.phase(problem)
	d.Conclude(problem, d.howItStands())
}

// howItStands is what is told when there is nothing else to tell.
func (d *decision) howItStands() string {
	switch {
	case d.Status.Phase == core.PhaseHealthy && len(d.Instances) == 1:
		return d.Status.Promotion.Instance + " " + serves(d.Status.Promotion)
	case d.Status.Phase == core.PhaseSwitchover && d.Status.Operation == nil:
		return attachingText(d.Status.Promotion.Instance, d.attaching())
	case d.Status.Phase == core.PhaseHealthy:
		return fmt.Sprintf("%s %s; all %d instances are healthy", d.Status.Promotion.Instance,
			serves(d.Status.Promotion), len(d.Instances))
	default:
		return "waiting for " + strings.Join(d.laggards(), ", ")
	}
}

// tellFull tells of a primary whose volume is full; who is told by Kubernetes' events is, too.
func (d *decision) tellFull() {
	if d.diagnosis.name == core.PrimaryFull {
		d.TellFull(d.Status.Promotion.Instance, d.diagnosis.says)
	}
}

// laggards names the instances that are not where they should be.
func (d *decision) laggards() []string {
	var names []string
	for i := range d.Instances {
		in := &d.Instances[i]
		r, absence := draft.Answering(in)
		isPrimary := d.Status.Promotion != nil && in.Name == d.Status.Promotion.Instance
		switch {
		case absence != "":
			names = append(names, in.Name+" ("+absence+")")
		case !isPrimary && d.Status.Promotion != nil && !streams(r, d.Status.Promotion.Instance):
			names = append(names, in.Name+" (does not replicate yet)")
		case !isPrimary && r.IsFull():
			names = append(names, in.Name+" (its volume is full)")
		case !isPrimary && !r.Server.SuperReadOnly:
			names = append(names, in.Name+" (not read-only)")
		case draft.Unready(in) != "":
			names = append(names, in.Name+" ("+draft.Unready(in)+")")
		case !isPrimary && d.mayLack(r):
			names = append(names, in.Name+" (may lack what it acknowledged)")
		}
	}
	if len(names) == 0 {
		return d.Outstanding()
	}
	return names
}

func isReady(pod core.Pod) bool { return pod.Ready }

func (d *decision) phase(problem string) core.Phase {
	op := d.Status.Operation
	switch {
	case d.IsBlocked():
		return core.PhaseBlocked
	case op != nil && op.Kind == core.OperationFailover && op.Reason != core.ReasonReturn:
		return core.PhaseFailover
	case op != nil && op.Kind == core.OperationGiveData:
		return core.PhaseDegraded
	case op != nil:
		return core.PhaseSwitchover
	case d.Status.EstablishedAt.IsZero():
		return core.PhaseProvisioning
	case d.Status.State == core.StateHealthy && !d.Status.CommitsHang && !d.IsOutdated():
		return core.PhaseHealthy
	}
	if d.isHandingOver() {
		d.RecheckAt(d.Status.Promotion.WritableSince.Add(attachTime))
		if !d.IsOutdated() {
			return core.PhaseSwitchover
		}
	}
	switch {
	case !d.diagnosis.name.EndsCommits() || d.Status.CommitsHang || d.IsHeldUp():
		return core.PhaseDegraded // whatever else is going on
	case len(d.Instances) != d.Cluster.Wanted || d.IsJoining():
		return core.PhaseScaling
	case problem == "" && d.IsOutdated():
		return core.PhaseUpdating
	default:
		return core.PhaseDegraded
	}
}

// clusterState is the situation in MOCO's terms.
func (d *decision) clusterState() core.ClusterState {
	if d.Status.Promotion == nil || d.Status.EstablishedAt.IsZero() {
		return d.Cluster.FirstState()
	}
	healthy, withData, replicas := 0, 0, len(d.Instances)-1
	primary := d.Status.Promotion.Instance
	if !d.takesWrites() {
		primary = d.Status.CurrentPrimary
	}
	others(d.Observation, primary, func(in *core.Instance) {
		r, ok := serving(in)
		if !ok || slices.Contains(d.Status.Diverged, in.Name) {
			return
		}
		withData++
		isWhole := !slices.Contains(d.Status.Broken, in.Name) && !d.mayLack(r) && !r.IsFull()
		if in.Pod.Is(isReady) && isWhole && r.Server.SuperReadOnly && streams(r, d.Status.Promotion.Instance) {
			healthy++
		}
	})
	switch {
	case d.diagnosis.name == core.PrimaryHealthy && healthy == replicas && len(d.Instances) == d.Cluster.Wanted &&
		d.Status.Ready == len(d.Instances) && d.notFollowing() == "":
		return core.StateHealthy
	case d.diagnosis.name.IsWell() && 2*healthy >= replicas:
		return core.StateDegraded
	case !d.diagnosis.name.IsStopped():
		return core.StateIncomplete
	default:
		return core.StateWithoutPrimary(withData, replicas)
	}
}

// problem finds what hinders an instance, in the words of whoever knows; stops
// tells whether the cluster cannot take writes until it is mended.
func (d *decision) problem() (text string, stops bool) {
	for i := range d.Instances {
		in := &d.Instances[i]
		if text := problemOf(in); text != "" {
			r, known := in.Report.Get()
			restarts := known && r.State == core.Stopped
			return text, d.Status.EstablishedAt.IsZero() && !restarts
		}
	}
	switch {
	case len(d.Status.Diverged) > 0:
		return fmt.Sprintf("%s: transactions that the primary does not have; kept out of service",
			strings.Join(d.Status.Diverged, ", ")), false
	case len(d.Status.Broken) > 0:
		r, known := d.Instance(d.Status.Broken[0]).Report.Get()
		if !known {
			return "replication of " + d.Status.Broken[0] + " was broken when it was last heard", false
		}
		return "replication of " + d.Status.Broken[0] + " is broken: " +
			d.sickness(d.Instance(d.Status.Broken[0]), r), false
	default:
		return "", false
	}
}

func problemOf(in *core.Instance) string {
	if r, known := in.Report.Get(); known &&
		(r.State == core.Failed || r.State == core.Stopped || r.State == core.Hung) && r.Message != "" {
		return in.Name + ": " + r.Problem().String()
	}
	if why := in.CannotRun(); why != nil {
		return in.Name + ": " + why.String()
	}
	return ""
}
