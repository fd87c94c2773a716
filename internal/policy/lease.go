package policy

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
)

// LeaseName is the name of the policy on the Leases of instances.
const LeaseName = "cnmsql-lease"

// Lease holds an instance to its own cluster's Lease, and there to itself. RBAC can
// not name what may be created: without this, an instance could make the Lease of another
// cluster between its release and its taking, or as many others as it likes.
//
// How far the epoch may grow is not bounded: a promotion that is never carried out takes
// no Lease, so that honest epochs leave some out.
func Lease() *admissionv1.ValidatingAdmissionPolicy {
	p := newPolicy(LeaseName, "leases", admissionv1.Create, admissionv1.Update)
	rule := &p.Spec.MatchConstraints.ResourceRules[0].Rule
	rule.APIGroups, rule.APIVersions = []string{"coordination.k8s.io"}, []string{"v1"}
	const me = "request.userInfo.username.split(':')[3]"
	const cluster = me + ".substring(0, " + me + ".lastIndexOf('-'))"
	p.Spec.MatchConditions = []admissionv1.MatchCondition{{
		Name: "by-an-instance",
		Expression: "request.userInfo.username.matches('^system:serviceaccount:' + request.namespace + ':.+-[1-9][0-9]*$') && authorizer.group('" + v1alpha1.GroupVersion.Group +
			"').resource('clusters').subresource('status').namespace(request.namespace).name(" + cluster + ").check('patch').allowed()",
	}}
	epoch := func(of string) string {
		text := fmt.Sprintf("%s.metadata.?annotations[?'%s'].orValue('0')", of, v1alpha1.AnnotationEpoch)
		return fmt.Sprintf("%[1]s.matches('^[0-9]{1,18}$') ? int(%[1]s) : -1", text)
	}
	p.Spec.Variables = []admissionv1.Variable{
		{Name: "me", Expression: me},
		{Name: "cluster", Expression: cluster},
		{Name: "holder", Expression: "object.?spec.?holderIdentity.orValue('')"},
		{Name: "before", Expression: "oldObject == null ? '' : oldObject.?spec.?holderIdentity.orValue('')"},
		{Name: "epoch", Expression: epoch("object")},
		{Name: "epochBefore", Expression: "oldObject == null ? 0 : " + epoch("oldObject")},
	}
	forbidden := metav1.StatusReasonForbidden
	p.Spec.Validations = []admissionv1.Validation{
		{Reason: &forbidden, Expression: "object.metadata.name == variables.cluster + '-primary'",
			MessageExpression: "variables.me + ' may keep no Lease but ' + variables.cluster + '-primary'"},
		{Reason: &forbidden, Expression: "variables.holder == variables.me || variables.before == variables.me && variables.holder == ''",
			MessageExpression: "variables.me + ' may name nobody but itself as the holder of a Lease, and take nobody else off it'"},
		{Reason: &forbidden, Expression: "variables.epoch >= 0 && variables.epoch >= variables.epochBefore",
			MessageExpression: "variables.me + ' may not set the epoch of a Lease back'"},
		{Reason: &forbidden, Expression: "variables.before == '' || variables.before == variables.me || variables.epoch > variables.epochBefore",
			MessageExpression: "variables.me + ' may take the Lease from ' + variables.before + ' for a later epoch only'"},
	}
	return p
}
