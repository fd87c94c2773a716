package policy

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"cnmsql.co/api/v1alpha1"
)

// PromotionName is the name of the policy on who may write what the operator acts on.
const PromotionName = "cnmsql-promotion"

// held are the fields of a Cluster's status by which the operator goes when it looks again: who may take
// writes, which image instances are made from, what is known to be missing from the archive, which
// verification runs, which spec all claims follow. Who may patch the status, to ask for a switchover, would
// decide by them what he has no right to. The others are the wish itself, and what is told to people: it is
// written anew at each look.
var held = []string{"promotion", "primaryEpoch", "currentPrimary", "establishedAt", "adoptedFrom", "operation",
	"instanceNames", "members", "divergedInstances", "fencedInstances", "primaryFailingSince",
	"lastFailoverTimestamp", "latestGeneratedNode", "replicationBrokenInstances", "groupReplication",
	"gtidExecutedByInstance", "switchoverReturn", "image", "continuousArchiving", "lastVerification",
	"verificationSchedule", "observedGeneration"}

// heldCondition is the one condition that is held: it says that the archive of a deleted Cluster is removed,
// and then the Cluster goes.
const heldCondition = v1alpha1.ConditionArchiveStored

// Promotion keeps what the operator goes by to those who hold the right to
// update clusters/promotion, a resource that exists for this right only: the
// operator, and whoever may do everything. A user who may edit a Cluster asks for
// a switchover in status.targetPrimary. Instances have a policy of their own.
func Promotion() *admissionv1.ValidatingAdmissionPolicy {
	p := newPolicy(PromotionName, "clusters/status", admissionv1.Update)
	p.Spec.MatchConditions = []admissionv1.MatchCondition{{
		Name:       "by-no-instance",
		Expression: "!" + byInstance,
	}}
	p.Spec.Variables = []admissionv1.Variable{
		{Name: "held", Expression: "['" + strings.Join(held, "', '") + "']"},
		oldStatus, newStatus,
		{Name: "conditions", Expression: "[variables.old, variables.new].map(s, 'conditions' in s ? " +
			"s.conditions.filter(c, c.type == '" + heldCondition + "') : [])"},
		{Name: "changed", Expression: "variables.held.filter(k, (k in variables.new) != (k in variables.old) || (k " +
			"in variables.new && variables.new[k] != variables.old[k])) + " +
			"(variables.conditions[0] == variables.conditions[1] ? [] : ['conditions[" + heldCondition + "]'])"},
	}
	p.Spec.Validations = []admissionv1.Validation{{
		Expression: "variables.changed.size() == 0 || " +
			"authorizer.group('mysql.cnmsql.co').resource('clusters').subresource('promotion')" +
			".namespace(request.namespace).name(request.name).check('update').allowed()",
		MessageExpression: "'status.' + variables.changed.join(', status.') + ' is written by the operator only, " +
			"because it acts on this value; an account with the right to update clusters/promotion may correct it. " +
			"To switch over, set status.targetPrimary (kubectl cnmsql promote)'",
	}}
	return p
}
