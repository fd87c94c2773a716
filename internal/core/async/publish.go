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
	if stops {
		d.block(core.RefusalProblem, problem)
	}
	d.s.Phase = d.phase(problem)
	switch {
	case d.blocked != nil:
		d.s.Reason = d.blocked.Message
	case d.doing != "":
		d.s.Reason = d.doing
	case problem != "":
		d.s.Reason = problem
	case d.s.Phase == core.PhaseHealthy:
		d.s.Reason = fmt.Sprintf("%s takes writes; all %d instances are healthy", d.s.Promotion.Instance, len(d.o.Instances))
	default:
		d.s.Reason = "waiting for the instances to become ready"
	}
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
	case d.s.State == core.StateHealthy:
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
	others(d.o, d.s.Promotion.Instance, func(in *core.Instance) {
		r, ok := serving(in)
		if !ok || slices.Contains(d.s.Diverged, in.Name) {
			return
		}
		withData++
		if pod, _ := in.Pod.Get(); pod.Ready && r.Server.SuperReadOnly && streams(r, d.s.Promotion.Instance) {
			healthy++
		}
	})
	primaryServes := d.diagnosis.name == core.PrimaryHealthy
	switch {
	case primaryServes && healthy == replicas && len(d.o.Instances) == d.o.Cluster.Wanted && d.s.Ready == len(d.o.Instances):
		return core.StateHealthy
	case primaryServes && 2*healthy >= replicas:
		return core.StateDegraded
	case isFailing(d.diagnosis.name) && 2*withData > replicas:
		return core.StateFailed
	case isFailing(d.diagnosis.name):
		return core.StateLost
	default:
		return core.StateIncomplete
	}
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
			primaryFailed := known && r.State == core.Failed && d.s.Promotion != nil && in.Name == d.s.Promotion.Instance
			return text, d.s.EstablishedAt.IsZero() || primaryFailed
		}
	}
	switch {
	case len(d.s.Diverged) > 0:
		return fmt.Sprintf("%s: transactions that the primary does not have; kept out of service", strings.Join(d.s.Diverged, ", ")), false
	case len(d.s.Broken) > 0:
		r, _ := d.o.Instance(d.s.Broken[0]).Report.Get()
		return "replication of " + d.s.Broken[0] + " is broken: " + replicationError(r), false
	default:
		return "", false
	}
}

func problemOf(in *core.Instance) string {
	if r, known := in.Report.Get(); known && (r.State == core.Failed || r.State == core.Stopped) && r.Message != "" {
		return fmt.Sprintf("%s: %s: %s", in.Name, r.Reason, r.Message)
	}
	if vol, known := in.Volume.Get(); known && vol.Problem != nil {
		return fmt.Sprintf("%s: %s: %s", in.Name, vol.Problem.Reason, vol.Problem.Message)
	}
	if pod, known := in.Pod.Get(); known && pod.Waiting != nil {
		return fmt.Sprintf("%s: %s: %s", in.Name, pod.Waiting.Reason, pod.Waiting.Message)
	}
	return ""
}
