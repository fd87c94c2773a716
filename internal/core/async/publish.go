package async

import (
	"fmt"
	"slices"
	"strings"

	"cnmsql.co/internal/core"
)

// publish puts the cluster's situation in words.
func (d *decision) publish() {
	slices.Sort(d.s.InstanceNames)
	d.s.Diagnosis = d.diagnosis.name
	d.s.Ready = 0
	for i := range d.o.Instances {
		if pod, known := d.o.Instances[i].Pod.Get(); known && pod.Exists && pod.Ready && !pod.Terminating {
			d.s.Ready++
		}
	}
	d.s.State = d.clusterState()
	problem, stops := d.problem()
	if p := d.o.Cluster.Problem; p != nil && d.s.Operation == nil {
		d.block(core.Reason(p.Reason), p.Message)
	}
	if stops {
		d.block(core.RefusalProblem, problem)
	}
	d.s.Phase = d.phase(problem)
	d.s.Reason = strings.Join(append(d.sentence(problem), d.news...), "; ")
}

// sentence is the most important that can be said.
func (d *decision) sentence(problem string) []string {
	switch {
	case d.blocked != nil:
		d.tellBlocked()
		return []string{d.blocked.Message}
	case d.o.Cluster.Failed != "" && d.s.Phase != core.PhaseHealthy:
		return []string{"could not " + d.o.Cluster.Failed + "; it is tried again"}
	case d.doing != "":
		return []string{d.doing}
	case len(d.news) > 0:
		return nil
	case problem != "":
		return []string{problem}
	case d.s.Phase == core.PhaseHealthy && len(d.o.Instances) == 1:
		return []string{d.s.Promotion.Instance + " takes writes"}
	case d.s.Phase == core.PhaseHealthy:
		return []string{fmt.Sprintf("%s takes writes; all %d instances are healthy", d.s.Promotion.Instance, len(d.o.Instances))}
	default:
		return []string{"waiting for " + strings.Join(d.laggards(), ", ")}
	}
}

// tellBlocked: every refusal is an event, once.
func (d *decision) tellBlocked() {
	before := d.o.Cluster.Status
	if before.Phase != core.PhaseBlocked || !d.isSaid(d.blocked.Message) {
		d.warn(core.Reason(d.blocked.Reason), d.blocked.Message)
	}
}

// laggards names the instances that are not where they should be.
func (d *decision) laggards() []string {
	var names []string
	for i := range d.o.Instances {
		in := &d.o.Instances[i]
		r, known := in.Report.Get()
		pod, _ := in.Pod.Get()
		isPrimary := d.s.Promotion != nil && in.Name == d.s.Promotion.Instance
		switch {
		case !known:
			names = append(names, in.Name+" (no answer)")
		case r.Terminating || pod.Terminating:
			names = append(names, in.Name+" (is being stopped)")
		case r.State != core.Running || r.Server == nil:
			names = append(names, fmt.Sprintf("%s (%s)", in.Name, r.State))
		case !isPrimary && d.s.Promotion != nil && !streams(r, d.s.Promotion.Instance):
			names = append(names, in.Name+" (does not replicate yet)")
		case !isPrimary && !r.Server.SuperReadOnly:
			names = append(names, in.Name+" (not read-only)")
		case !pod.Ready:
			names = append(names, in.Name+" (not ready)")
		}
	}
	if len(names) == 0 {
		return []string{"the instances to be made"}
	}
	return names
}

func (d *decision) phase(problem string) core.Phase {
	op := d.s.Operation
	switch {
	case d.blocked != nil:
		return core.PhaseBlocked
	case op != nil && op.Kind == core.OperationFailover:
		return core.PhaseFailover
	case op != nil:
		return core.PhaseSwitchover
	case d.s.EstablishedAt.IsZero():
		return core.PhaseProvisioning
	case d.s.State == core.StateHealthy && !d.hangs && !d.outdated():
		return core.PhaseHealthy
	case len(d.o.Instances) != d.o.Cluster.Wanted || d.joining():
		return core.PhaseScaling
	case problem == "" && d.outdated():
		return core.PhaseUpdating
	default:
		return core.PhaseDegraded
	}
}

// clusterState is the situation in MOCO's terms.
func (d *decision) clusterState() core.ClusterState {
	if d.s.Promotion == nil || d.s.EstablishedAt.IsZero() {
		return core.StateIncomplete
	}
	healthy, withData, replicas := 0, 0, len(d.o.Instances)-1
	primary := d.s.Promotion.Instance
	if !d.takesWrites() {
		primary = d.s.CurrentPrimary
	}
	others(d.o, primary, func(in *core.Instance) {
		r, ok := serving(in)
		if !ok || slices.Contains(d.s.Diverged, in.Name) {
			return
		}
		withData++
		if pod, _ := in.Pod.Get(); pod.Ready && !slices.Contains(d.s.Broken, in.Name) && r.Server.SuperReadOnly && streams(r, d.s.Promotion.Instance) {
			healthy++
		}
	})
	primaryServes := d.diagnosis.name == core.PrimaryHealthy
	switch {
	case primaryServes && healthy == replicas && len(d.o.Instances) == d.o.Cluster.Wanted && d.s.Ready == len(d.o.Instances):
		return core.StateHealthy
	case primaryServes && 2*healthy >= replicas:
		return core.StateDegraded
	case !d.isStopped():
		return core.StateIncomplete
	case 2*withData > replicas || replicas == 0:
		return core.StateFailed
	default:
		return core.StateLost
	}
}

// isStopped: it is known that nobody takes writes.
func (d *decision) isStopped() bool {
	return isFailing(d.diagnosis.name) || d.diagnosis.name == core.PrimaryPromoting || d.diagnosis.name == core.PrimaryFenced
}

// joining: an instance is on its way to its first data.
func (d *decision) joining() bool {
	for i := range d.o.Instances {
		if r, known := d.o.Instances[i].Report.Get(); known && r.Data != core.DataPopulated && r.State != core.Failed {
			return true
		}
	}
	return false
}

func (d *decision) outdated() bool {
	for i := range d.o.Instances {
		if pod, known := d.o.Instances[i].Pod.Get(); known && pod.Exists && !pod.Current {
			return true
		}
	}
	return false
}

// problem finds what hinders an instance, in the words of whoever knows; stops
// tells whether the cluster cannot take writes until it is mended.
func (d *decision) problem() (text string, stops bool) {
	for i := range d.o.Instances {
		in := &d.o.Instances[i]
		if text := problemOf(in); text != "" {
			r, known := in.Report.Get()
			restarts := known && r.State == core.Stopped
			return text, d.s.EstablishedAt.IsZero() && !restarts
		}
	}
	switch {
	case len(d.s.Diverged) > 0:
		return fmt.Sprintf("%s: transactions that the primary does not have; kept out of service", strings.Join(d.s.Diverged, ", ")), false
	case len(d.s.Broken) > 0:
		r, known := d.o.Instance(d.s.Broken[0]).Report.Get()
		if !known {
			return "replication of " + d.s.Broken[0] + " was broken when it was last heard", false
		}
		return "replication of " + d.s.Broken[0] + " is broken: " + replicationError(r), false
	default:
		return "", false
	}
}

func problemOf(in *core.Instance) string {
	if r, known := in.Report.Get(); known && (r.State == core.Failed || r.State == core.Stopped || r.State == core.Hung) && r.Message != "" {
		return in.Name + ": " + sentence(r.Reason, r.Message)
	}
	if vol, known := in.Volume.Get(); known && vol.Problem != nil {
		return in.Name + ": " + sentence(vol.Problem.Reason, vol.Problem.Message)
	}
	if pod, known := in.Pod.Get(); known && pod.Waiting != nil {
		return in.Name + ": " + sentence(pod.Waiting.Reason, pod.Waiting.Message)
	}
	return ""
}
