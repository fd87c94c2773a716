package policy

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
)

// LeaseName is the name of the policy on the Leases of instances, LeaseEpochName that of
// the one that holds their epoch to the Cluster's, and LeaseWritersName that of the one on
// everybody else.
const (
	LeaseName        = "cnmsql-lease"
	LeaseEpochName   = "cnmsql-lease-epoch"
	LeaseWritersName = "cnmsql-lease-writers"
)

// me is the instance that asks, ofCluster the name of its Cluster, and ownLease that of its Lease.
const (
	me        = "request.userInfo.username.split(':')[3]"
	ofCluster = me + ".substring(0, " + me + ".lastIndexOf('-'))"
	ownLease  = ofCluster + " + '-primary'"
)

// namedAsInstance is the expression of whether the request comes from a ServiceAccount that has
// the name of an instance and an instance's right to write the status of the Cluster. That does
// not make it an instance: whoever may edit Clusters has that right, too, also where there is no
// such Cluster, and the names of others' ServiceAccounts end in numbers as well.
const namedAsInstance = "request.userInfo.username.matches('^system:serviceaccount:' + request.namespace + " +
	"':.+-[1-9][0-9]*$') && authorizer.group('mysql.cnmsql.co').resource('clusters').subresource('status')" +
	".namespace(request.namespace).name(" + ofCluster + ").check('patch').allowed()"

// byHolder tells whether a change of a Lease comes from an instance: it is that of its own
// cluster, or it comes from one that may make no Leases, as no instance may. Who elects a leader
// for another application makes the Lease for it, or was given the right to.
var byHolder = namedAsInstance + " && (request.name == " + ownLease + " && (" + labelOf("object") + " != '' || " +
	labelOf("oldObject") + " != '') || !authorizer.group('coordination.k8s.io').resource('leases')" +
	".namespace(request.namespace).check('create').allowed())"

// labelOf is the Cluster that a Lease has in its label.
func labelOf(lease string) string {
	return fmt.Sprintf("%s.metadata.?labels[?'%s'].orValue('')", lease, v1alpha1.LabelCluster)
}

// Lease holds an instance to its own cluster's Lease, and there to itself: RBAC names the
// one record that it may update, and that it may neither make nor delete any, but not what
// may be in it.
//
// The label is demanded because LeaseEpoch looks at labelled Leases only.
func Lease() *admissionv1.ValidatingAdmissionPolicy {
	p := leasePolicy(LeaseName)
	p.Spec.Variables = append(p.Spec.Variables, admissionv1.Variable{Name: "label", Expression: labelOf("object")})
	forbidden := metav1.StatusReasonForbidden
	p.Spec.Validations = []admissionv1.Validation{
		{Reason: &forbidden,
			Expression:        "object.metadata.name == variables.cluster + '-primary'",
			MessageExpression: "variables.me + ' may keep no Lease but ' + variables.cluster + '-primary'"},
		{Reason: &forbidden, Expression: "variables.label == variables.cluster",
			MessageExpression: "'the Lease that ' + variables.me +" +
				" ' keeps has the label " + v1alpha1.LabelCluster + "=' + variables.cluster"},
		{Reason: &forbidden,
			Expression: "variables.holder == variables.me" +
				" || variables.before == variables.me && variables.holder == ''",
			MessageExpression: "variables.me + ' may name nobody but itself as the holder of a Lease, and take " +
				"nobody else off it'"},
		{Reason: &forbidden,
			Expression: "variables.isReleased" +
				" || variables.epoch >= 0 && variables.epoch >= variables.epochBefore",
			MessageExpression: "variables.me + ' may not set the epoch of a Lease back'"},
		{Reason: &forbidden,
			Expression: "variables.before == '' || variables.before == variables.me" +
				" || variables.epoch > variables.epochBefore",
			MessageExpression: "variables.me + ' may take the Lease from ' + variables.before + " +
				"' for a later epoch only'"},
	}
	return p
}

// LeaseEpoch holds what an instance writes into its cluster's Lease to what the operator
// promoted: it takes the Lease for the epoch of its own promotion, renews it in the epoch
// that it holds it in, and releases it to nobody and no epoch. A higher one would keep every
// later primary from taking the record.
//
// It is a policy of its own for the sake of all other Leases. Its parameters are the
// Clusters, which the API server has to read first; while it can not (the CRD is gone, or
// the server has just started), all that the policy is about is refused. The label keeps
// the Leases of nodes and of everybody else out of that.
func LeaseEpoch() *admissionv1.ValidatingAdmissionPolicy {
	p := leasePolicy(LeaseEpochName)
	p.Spec.ParamKind = &admissionv1.ParamKind{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Cluster"}
	p.Spec.MatchConstraints.ObjectSelector = labelled()
	p.Spec.Variables = append(p.Spec.Variables,
		admissionv1.Variable{Name: "promoted", Expression: "params.?status.?promotion.?instance.orValue('')"},
		admissionv1.Variable{Name: "granted", Expression: "params.?status.?promotion.?epoch.orValue(0)"},
	)
	forbidden := metav1.StatusReasonForbidden
	p.Spec.Validations = []admissionv1.Validation{{
		Reason: &forbidden,
		Expression: "params.metadata.name != variables.cluster || variables.isReleased" +
			" || variables.before == variables.me && variables.epoch == variables.epochBefore" +
			" || variables.promoted == variables.me && variables.epoch == variables.granted",
		MessageExpression: "variables.me + ' may take the Lease for the epoch of its own promotion only: epoch '" +
			" + string(variables.granted) + ' is of ' + (variables.promoted == '' ? 'nobody' : variables.promoted)",
	}}
	return p
}

// LeaseEpochBinding gives LeaseEpoch the Clusters of the Lease's namespace. Where there is
// none, there is nothing to hold an instance to.
func LeaseEpochBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	b, allow := Binding(LeaseEpoch()), admissionv1.AllowAction
	b.Spec.ParamRef = &admissionv1.ParamRef{Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: &allow}
	return b
}

// LeaseWriters keeps the record of a primary, a Lease with the label of a Cluster and the name
// that goes with it, to its instances, which Lease and LeaseEpoch look at, and to those who may
// update clusters/promotion. The role edit of Kubernetes itself may write all Leases of a
// namespace: with another holder and an epoch that nobody reaches, nobody could be promoted.
//
// What makes and deletes the records of a release before is an instance, too: its Role says
// whether it may. In a namespace that goes, they go.
func LeaseWriters() *admissionv1.ValidatingAdmissionPolicy {
	p := newLeasePolicy(LeaseWritersName, admissionv1.Create, admissionv1.Update, admissionv1.Delete)
	p.Spec.MatchConstraints.ObjectSelector = labelled()
	isRecord := func(of string) string {
		return fmt.Sprintf("(%[1]s != null && %[2]s != '' && %[1]s.metadata.name == %[2]s + '-primary')",
			of, labelOf(of))
	}
	p.Spec.MatchConditions = []admissionv1.MatchCondition{
		{Name: "of-a-primary", Expression: isRecord("object") + " || " + isRecord("oldObject")},
		{Name: "by-none-of-its-instances",
			Expression: "!(" + namedAsInstance + " && request.name == " + ownLease + ")"},
	}
	p.Spec.Variables = []admissionv1.Variable{{Name: "cluster",
		Expression: isRecord("oldObject") + " ? " + labelOf("oldObject") + " : " + labelOf("object")}}
	forbidden := metav1.StatusReasonForbidden
	p.Spec.Validations = []admissionv1.Validation{{
		Reason: &forbidden,
		Expression: "request.operation == 'DELETE' && has(namespaceObject.metadata.deletionTimestamp) || " +
			"authorizer.group('mysql.cnmsql.co').resource('clusters').subresource('promotion')" +
			".namespace(request.namespace).name(variables.cluster).check('update').allowed()",
		MessageExpression: "'the Lease ' + variables.cluster + '-primary is written by the instances of Cluster ' + " +
			"variables.cluster + ' and by the operator only: it decides who may take writes'",
	}}
	return p
}

func labelled() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: v1alpha1.LabelCluster, Operator: metav1.LabelSelectorOpExists}}}
}

func newLeasePolicy(name string, on ...admissionv1.OperationType) *admissionv1.ValidatingAdmissionPolicy {
	p := newPolicy(name, "leases", on...)
	rule := &p.Spec.MatchConstraints.ResourceRules[0].Rule
	rule.APIGroups, rule.APIVersions = []string{"coordination.k8s.io"}, []string{"v1"}
	return p
}

// leasePolicy is about what instances do to Leases, and knows who, of which cluster, and
// what becomes of holder and epoch.
func leasePolicy(name string) *admissionv1.ValidatingAdmissionPolicy {
	p := newLeasePolicy(name, admissionv1.Update)
	p.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "by-an-instance", Expression: byHolder}}
	epoch := func(of string) string {
		text := fmt.Sprintf("%s.metadata.?annotations[?'%s'].orValue('0')", of, v1alpha1.AnnotationEpoch)
		return fmt.Sprintf("(%[1]s.matches('^[0-9]{1,18}$') ? int(%[1]s) : -1)", text)
	}
	p.Spec.Variables = []admissionv1.Variable{
		{Name: "me", Expression: me},
		{Name: "cluster", Expression: ofCluster},
		{Name: "holder", Expression: "object.?spec.?holderIdentity.orValue('')"},
		{Name: "before", Expression: "oldObject.?spec.?holderIdentity.orValue('')"},
		{Name: "epoch", Expression: epoch("object")},
		{Name: "epochBefore", Expression: epoch("oldObject")},
		{Name: "isReleased", Expression: "variables.before == variables.me" +
			" && variables.holder == '' && variables.epoch == 0"},
	}
	return p
}
