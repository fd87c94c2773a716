package policy

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
)

// InstancePodName is the name of the policy on an instance's changes of its own Pod.
const InstancePodName = "cnmsql-instance-pod"

// InstancePod holds a member of a group to the one thing that it may change of its own
// Pod: the doorbell. RBAC can name the Pod and no more; with a label of another instance
// the Pod would get the writes of clients, who send their passwords first.
func InstancePod() *admissionv1.ValidatingAdmissionPolicy {
	p := newPolicy(InstancePodName, "pods", admissionv1.Update)
	match := p.Spec.MatchConstraints
	match.ResourceRules[0].APIGroups, match.ResourceRules[0].APIVersions = []string{""}, []string{"v1"}
	// Either the old or the new object has to have it: nobody gets out by taking it off.
	match.ObjectSelector =
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelInstance,
			Operator: metav1.LabelSelectorOpExists}}}
	p.Spec.MatchConditions = []admissionv1.MatchCondition{{
		Name:       "by-the-instance-itself",
		Expression: "request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':' + request.name",
	}}
	p.Spec.Variables = []admissionv1.Variable{
		{Name: "old", Expression: "has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}"},
		{Name: "new", Expression: "has(object.metadata.annotations) ? object.metadata.annotations : {}"},
		{Name: "annotations", Expression: fmt.Sprintf(
			"(variables.new.filter(k, !(k in variables.old) || variables.new[k] != variables.old[k]) + "+
				"variables.old.filter(k, !(k in variables.new))).filter(k, k != '%s')",
			v1alpha1.AnnotationGroupObserved)},
		{Name: "rest", Expression: same("object.metadata.?labels", "{}") + " && " + same("object.metadata.?finalizers",
			"[]") + " && " + same("object.metadata.?ownerReferences", "[]")},
	}
	const only = "request.name + ' may change only one thing of its own Pod, the annotation " +
		v1alpha1.AnnotationGroupObserved
	p.Spec.Validations = []admissionv1.Validation{
		{Expression: "variables.annotations.size() == 0", MessageExpression: only +
			", not ' + variables.annotations.join(', ')"},
		{Expression: "variables.rest", MessageExpression: only + ", neither labels, finalizers nor owners'"},
		{Expression: "object.spec == oldObject.spec", MessageExpression: only + ", and nothing of its spec'"},
	}
	return p
}

// same compares a field of the object with what it was.
func same(field, otherwise string) string {
	now := fmt.Sprintf("%s.orValue(%s)", field, otherwise)
	return fmt.Sprintf("%s == oldObject%s", now, now[len("object"):])
}
