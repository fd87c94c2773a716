package plugin

import (
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/layout"
)

// adviseSlow is for an operation that takes long, and for the end of a switchover, at which nobody takes writes.
func adviseSlow(f *Facts, r *Report) []string {
	op := r.Operation
	if op == nil || op.Step == string(core.StepCatchUp) || r.Phase == string(core.PhaseBlocked) {
		return nil
	}
	isLong := op.Started != nil && (f.Now.Sub(*op.Started) >= operationIsLong ||
		op.Deadline != nil && f.Now.After(*op.Deadline))
	var out []string
	if !f.topology().ElectsByItself() && op.Kind == string(core.OperationSwitchover) &&
		op.Step == string(core.StepPromote) {
		out = advisePromoting(f, r, isLong)
	}
	if !isLong {
		return out
	}
	if !f.topology().ElectsByItself() && op.Kind == string(core.OperationFailover) &&
		op.Step == string(core.StepPromote) {
		out = append(out, fmt.Sprintf("see what hinders %s, which was promoted: kubectl logs %[1]s -c %s -n %s "+
			"--tail 50. If it does not reach the API server, and nobody is promoted instead, fix that, or delete its "+
			"Pod, never with --force: kubectl delete pod %[1]s -n %[3]s", op.To, layout.Container, r.Namespace))
	}
	return append(out, fmt.Sprintf("the %s takes long; see what the operator says: kubectl get events -n %s "+
		"--field-selector involvedObject.name=%s, and its log (%s)", op.Kind, r.Namespace, r.Name, findOperator))
}

// advisePromoting tells what becomes of a switchover whose target does not take writes.
func advisePromoting(f *Facts, r *Report, isLong bool) []string {
	op := r.Operation
	back := fmt.Sprintf("kubectl cnmsql promote %s %s -n %s", r.Name, op.From, r.Namespace)
	switch mayReturn := f.mayReturn(op.From); {
	case mayReturn && f.Cluster.Spec.MaxSwitchoverPause > 0 && !isLong:
		return []string{fmt.Sprintf("nothing: if %s does not take writes within spec.maxSwitchoverPause (%s), %s "+
			"takes them again. To have that now: %s", op.To, f.pause(), op.From, back)}
	case mayReturn && isLong:
		return []string{fmt.Sprintf("to have %s take writes again: %s", op.From, back)}
	case isLong:
		return []string{fmt.Sprintf("it is not seen that %s can take writes again; see what %s says: kubectl logs %s "+
			"-c %s -n %s --tail 50", op.From, op.To, op.To, layout.Container, r.Namespace)}
	}
	return nil
}

func (f *Facts) pause() time.Duration {
	return time.Duration(f.Cluster.Spec.MaxSwitchoverPause) * time.Second
}

// mayReturn reports whether the former primary is seen to be able to take writes again: it answers, stays, and has
// what its successor was to get. The operator, which decides it, sees more.
func (f *Facts) mayReturn(name string) bool {
	r, pod := f.live(name), f.Pods[name]
	if r == nil || r.Server == nil || r.Terminating || slices.Contains(f.Cluster.Status.DivergedInstances, name) ||
		pod != nil && pod.DeletionTimestamp != nil {
		return false
	}
	p := f.Cluster.Status.Promotion
	if p == nil {
		return true
	}
	required, err := gtid.Parse(p.RequiredGTID)
	return err == nil && r.Server.Holds().Contains(required)
}
