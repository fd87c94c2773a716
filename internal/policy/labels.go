package policy

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// PodLabelsName is the name of the policy on who may carry the labels of an instance.
const PodLabelsName = "cnmsql-pod-labels"

// PodLabels keeps the labels by which Services lead clients to a Pod, and by which the
// operator finds it, to Pods that are instances. Services select by labels alone, so that
// a copy of an instance's manifest gets a share of the clients, and their passwords.
//
// Only who may update clusters/promotion sets or changes them: the operator, and whoever
// may do everything. And even they give them to none but a Pod that its Cluster controls
// and that has the instance's name: an administrator who copies a manifest means no harm,
// and does the same.
func PodLabels() *admissionv1.ValidatingAdmissionPolicy {
	p := newPolicy(PodLabelsName, "pods", admissionv1.Create, admissionv1.Update)
	match := p.Spec.MatchConstraints
	rule := &match.ResourceRules[0].Rule
	// Labels can be changed by way of the status, too.
	rule.APIGroups, rule.APIVersions, rule.Resources = []string{""}, []string{"v1"}, []string{"pods", "pods/status"}
	// All Services and budgets select by it besides; no other Pod is looked at.
	match.ObjectSelector =
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelCluster,
			Operator: metav1.LabelSelectorOpExists}}}
	p.Spec.MatchConditions = []admissionv1.MatchCondition{
		{Name: "with-labels-of-an-instance", Expression: carries("object") + " || oldObject != null && " +
			carries("oldObject")},
		{Name: "set-or-changed", Expression: fmt.Sprintf("oldObject == null || %s.exists(k, "+
			"object.metadata.?labels[?k].orValue('') != oldObject.metadata.?labels[?k].orValue(''))",
			quoted(steering()))},
	}
	label := func(of, key string) string { return fmt.Sprintf("%s.metadata.?labels[?'%s'].orValue('')", of, key) }
	p.Spec.Variables = []admissionv1.Variable{
		{Name: "cluster", Expression: fmt.Sprintf("%[1]s != '' ? %[1]s : %[2]s", label("object", v1alpha1.LabelCluster),
			label("oldObject", v1alpha1.LabelCluster))},
		{Name: "controlled", Expression: "object.metadata.?ownerReferences.orValue([]).exists(r, " +
			"r.?controller.orValue(false) && r.kind == 'Cluster' && r.apiVersion.startsWith('" +
			v1alpha1.GroupVersion.Group + "/') && r.name == variables.cluster)"},
		{Name: "named", Expression: label("object", v1alpha1.LabelInstance) + " == object.metadata.name && " +
			"object.metadata.name.matches('^' + variables.cluster + '-[1-9][0-9]*$')"},
	}
	p.Spec.Validations = []admissionv1.Validation{
		{
			Expression: "authorizer.group('" + v1alpha1.GroupVersion.Group +
				"').resource('clusters').subresource('promotion')" +
				".namespace(request.namespace).name(variables.cluster).check('update').allowed()",
			MessageExpression: "'only the operator sets the labels of an instance of Cluster ' + variables.cluster + " +
				"': its Services send clients to every Pod that has them. Remove " +
				strings.Join(resources.RoutingLabels, ", ") + "'",
		},
		{
			Expression: "!(" + carries("object") + ") || variables.controlled && variables.named",
			MessageExpression: "'this Pod is not an instance of Cluster ' + variables.cluster + ', which owns its " +
				"instances and names them: with these labels, its Services would send clients to this Pod. " +
				"From a copy of an instance, remove " + strings.Join(resources.RoutingLabels, ", ") + "'",
		},
	}
	return p
}

// componentKey and componentInstance mark an instance to the disruption budget.
const componentKey, componentInstance = "app.kubernetes.io/component", "instance"

// carries returns the expression of whether an object would be selected as an instance of the
// Cluster that it names.
func carries(of string) string {
	return fmt.Sprintf("'%s' in %[2]s.metadata.?labels.orValue({}) && (%[3]s.exists(k, k in %[2]s.metadata.labels) "+
		"|| %[2]s.metadata.labels[?'%[4]s'].orValue('') == '%[5]s')",
		v1alpha1.LabelCluster, of, quoted(resources.RoutingLabels), componentKey, componentInstance)
}

// steering are all labels that decide it.
func steering() []string {
	return append([]string{v1alpha1.LabelCluster, componentKey}, resources.RoutingLabels...)
}

func quoted(words []string) string { return "['" + strings.Join(words, "', '") + "']" }
