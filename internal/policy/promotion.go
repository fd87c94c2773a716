package policy

import admissionv1 "k8s.io/api/admissionregistration/v1"

// PromotionName is the name of the policy on who may decide who is writable.
const PromotionName = "cnmsql-promotion"

// Promotion keeps what decides who may be writable to those who hold the right to
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
		{Name: "held", Expression: "['promotion', 'primaryEpoch', 'currentPrimary', 'establishedAt', 'adoptedFrom', " +
			"'operation', 'instanceNames', 'members', 'divergedInstances', 'fencedInstances', 'primaryFailingSince', 'lastFailoverTimestamp', 'latestGeneratedNode', 'replicationBrokenInstances', 'groupReplication', 'gtidExecutedByInstance']"},
		oldStatus, newStatus,
		{Name: "changed", Expression: "variables.held.filter(k, (k in variables.new) != (k in variables.old) || (k " +
			"in variables.new && variables.new[k] != variables.old[k]))"},
	}
	p.Spec.Validations = []admissionv1.Validation{{
		Expression: "variables.changed.size() == 0 || " +
			"authorizer.group('mysql.cnmsql.co').resource('clusters').subresource('promotion')" +
			".namespace(request.namespace).name(request.name).check('update').allowed()",
		MessageExpression: "'status.' + variables.changed.join(', status.') + ' is written by the operator only: it " +
			"decides who may take writes. To switch over, set status.targetPrimary (kubectl cnmsql promote)'",
	}}
	return p
}
