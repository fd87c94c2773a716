package operator

import (
	"slices"

	"github.com/go-logr/logr"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// logDecision writes what was decided into the operator's log, a line each: what changed in
// the status, the events, and the effects that the last plan had not. What is the same at
// every look is told once.
func (s *clusterState) logDecision(log logr.Logger, before *v1alpha1.ClusterStatus, plan core.Plan) {
	if changed := changes(before, plan.Status); len(changed) > 0 {
		log.Info("the status changes", changed...)
	}
	for _, e := range plan.Events {
		log.Info("the operator reports an event", "reason", e.Reason, "warning", e.Warning, "message", e.Message)
	}
	for _, e := range plan.Effects {
		if !slices.Contains(s.effects, e) {
			log.Info("the operator carries out an effect", "effect", e.String())
		}
	}
	s.effects = plan.Effects
}

// changes are the names in a status that are others than before, as keys and values.
func changes(before *v1alpha1.ClusterStatus, after core.Status) []any {
	var out []any
	add := func(key, was, is string) {
		if was != is {
			out = append(out, key, is, key+"Before", was)
		}
	}
	add("phase", before.Phase, string(after.Phase))
	add("diagnosis", before.Diagnosis, string(after.Diagnosis))
	add("primary", before.CurrentPrimary, after.CurrentPrimary)
	var was, is, wasBlocked, isBlocked string
	if op := before.Operation; op != nil {
		was = op.Kind + " " + op.Step
	}
	if op := after.Operation; op != nil {
		is = string(op.Kind) + " " + string(op.Step)
	}
	if b := before.Blocked; b != nil {
		wasBlocked = b.Reason
	}
	if b := after.Blocked; b != nil {
		isBlocked = string(b.Reason)
	}
	add("operation", was, is)
	add("blocked", wasBlocked, isBlocked)
	if len(out) > 0 || !after.IsOf(before.PrimaryEpoch) {
		out = append(out, "epoch", after.Epoch)
	}
	return out
}
