package policy

import (
	"fmt"
	"strconv"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
)

// SecretSizeName is the name of the policy on how large a Secret may be that names a Cluster.
const SecretSizeName = "cnmsql-secret-size"

// secretLimit is what such a Secret may hold, in KiB: many times what the operator's own hold.
const secretLimit = 64

// SecretSize bounds Secrets that carry the label by which the operator knows what belongs to a Cluster.
// It keeps all of them in memory, whoever made them: with a few thousand of the size that Kubernetes
// allows, one namespace would have the operator of all killed. Only who may update clusters/promotion
// makes larger ones. What is there already stays, and can be changed otherwise or taken back.
func SecretSize() *admissionv1.ValidatingAdmissionPolicy {
	p := newPolicy(SecretSizeName, "secrets", admissionv1.Create, admissionv1.Update)
	match := p.Spec.MatchConstraints
	rule := &match.ResourceRules[0].Rule
	rule.APIGroups, rule.APIVersions = []string{""}, []string{"v1"}
	match.ObjectSelector =
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelCluster,
			Operator: metav1.LabelSelectorOpExists}}}
	named := func(of string) string {
		return fmt.Sprintf("'%s' in %s.metadata.?labels.orValue({})", v1alpha1.LabelCluster, of)
	}
	p.Spec.MatchConditions = []admissionv1.MatchCondition{
		{Name: "names-a-cluster", Expression: named("object")},
		{Name: "set-or-changed", Expression: "oldObject == null || !(" + named("oldObject") + ") || " +
			"object.?data != oldObject.?data || object.metadata.?annotations != oldObject.metadata.?annotations"},
	}
	// A value of data is in base64 here: four characters are three bytes.
	const sum = "%s.orValue({}).map(k, k.size() + %[1]s.orValue({})[k].size()).sum()"
	p.Spec.Variables = []admissionv1.Variable{
		{Name: "data", Expression: fmt.Sprintf(sum, "object.?data")},
		{Name: "annotations", Expression: fmt.Sprintf(sum, "object.metadata.?annotations")},
	}
	p.Spec.Validations = []admissionv1.Validation{{
		Expression: "variables.data * 3 / 4 + variables.annotations <= " + strconv.Itoa(secretLimit*1024) +
			" || authorizer.group('" + v1alpha1.GroupVersion.Group + "')" +
			".resource('clusters').subresource('promotion')" +
			".namespace(request.namespace).name(object.metadata.labels['" + v1alpha1.LabelCluster + "'])" +
			".check('update').allowed()",
		Message: fmt.Sprintf("a Secret with the label %s holds at most %d KiB, annotations included: "+
			"the operator keeps "+
			"it in memory; remove the label, which only the operator sets", v1alpha1.LabelCluster, secretLimit),
	}}
	return p
}
