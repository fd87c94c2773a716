package policy

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"cnmsql.co/internal/core"
)

// InstanceStatusName is the name of the policy on an instance's status writes.
const InstanceStatusName = "cnmsql-instance-status"

// byInstance tells whether a request comes from an instance of the Cluster that it
// is about. The name of a namespace or a Cluster holds no character that means
// something in a regular expression.
const byInstance = "request.userInfo.username.matches(" +
	"'^system:serviceaccount:' + request.namespace + ':' + request.name + '-[1-9][0-9]*$')"

// oldStatus and newStatus are the status as it is and as it is to be; without one, empty.
var (
	oldStatus = admissionv1.Variable{Name: "old", Expression: "has(oldObject.status) ? dyn(oldObject.status) : {}"}
	newStatus = admissionv1.Variable{Name: "new", Expression: "has(object.status) ? dyn(object.status) : {}"}
)

// others are the fields of a status that are changed from variables.old to variables.new, and are
// not among variables.own, which the one who asks may write.
var others = admissionv1.Variable{Name: "others",
	Expression: "variables.new.filter(k, !(k in variables.own) && (!(k in variables.old) || " +
		"variables.new[k] != variables.old[k])) + " +
		"variables.old.filter(k, !(k in variables.own) && !(k in variables.new))"}

// tellsNoPrimary is true of a Cluster whose instances have nothing to say in its status.
func tellsNoPrimary() string {
	var any []string
	for _, t := range core.Topologies() {
		if !t.TellsPrimary() {
			any = append(any, "has(object.spec.replication) && object.spec.replication.mode == '"+t.String()+"'")
		}
	}
	return strings.Join(any, " || ")
}

// InstanceStatus holds an instance to the one thing it has to say in the status
// of its Cluster: that it became the primary, which the operator permitted it.
// An instance is known by its ServiceAccount, <cluster>-<number> in the
// Cluster's namespace; nobody else is hindered.
func InstanceStatus() *admissionv1.ValidatingAdmissionPolicy {
	p := newPolicy(InstanceStatusName, "clusters/status", admissionv1.Update)
	p.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "by-an-instance", Expression: byInstance}}
	p.Spec.Variables = []admissionv1.Variable{
		{Name: "me", Expression: "request.userInfo.username.split(':')[3]"},
		{Name: "own", Expression: "['currentPrimary', 'currentPrimaryTimestamp']"},
		oldStatus, newStatus,
		others,
		{Name: "isGroup", Expression: tellsNoPrimary()},
		{Name: "claims", Expression: "variables.own.exists(k, (k in variables.new) != (k in variables.old) || (k in " +
			"variables.new && variables.new[k] != variables.old[k]))"},
	}
	p.Spec.Validations = []admissionv1.Validation{
		{
			Expression: "!variables.isGroup || !variables.claims && variables.others.size() == 0",
			MessageExpression: "variables.me + ' is a member of a group and may not write the status of its Cluster: " +
				"the operator asks the group itself'",
		},
		{
			Expression: "variables.others.size() == 0",
			MessageExpression: "'an instance may write status.currentPrimary and status.currentPrimaryTimestamp " +
				"only, not status.' + variables.others.join(', status.')",
		},
		{
			Expression: "!variables.claims || ('currentPrimary' in variables.new && " +
				"variables.new.currentPrimary == variables.me)",
			MessageExpression: "'an instance may set status.currentPrimary to itself (' + variables.me + ') only'",
		},
		{
			Expression: "!variables.claims || ('targetPrimary' in variables.old && " +
				"variables.old.targetPrimary == variables.me && 'promotion' in variables.old && " +
				"variables.old.promotion.instance == variables.me)",
			MessageExpression: "variables.me + ' may set status.currentPrimary only while status.targetPrimary and " +
				"status.promotion.instance are ' + variables.me",
		},
		{
			Expression: "!variables.claims || !('currentPrimaryTimestamp' in variables.new) || " +
				"variables.new.currentPrimaryTimestamp.matches('" + readableMicroTime + "')",
			Message: "status.currentPrimaryTimestamp must be a time as 2026-11-26T14:00:00.000000Z",
		},
	}
	return p
}
