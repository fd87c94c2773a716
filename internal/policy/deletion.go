package policy

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
)

// DeletionName is the name of the policy on who may delete a Cluster.
const DeletionName = "cnmsql-deletion"

// Deletion refuses the deletion of a Cluster that carries the annotation
// AnnotationDeletionProtection, whoever asks. In a namespace that is being deleted it
// refuses nothing: Kubernetes deletes the Pods and the claims there all the same, and only
// the namespace would stay.
func Deletion() *admissionv1.ValidatingAdmissionPolicy {
	p := newPolicy(DeletionName, "clusters", admissionv1.Delete)
	const protected = "oldObject.metadata.?annotations[?'" + v1alpha1.AnnotationDeletionProtection + "']"
	p.Spec.MatchConditions = []admissionv1.MatchCondition{{
		Name:       "protected",
		Expression: protected + ".hasValue() && " + protected + ".value() != 'false'",
	}}
	forbidden := metav1.StatusReasonForbidden
	p.Spec.Validations = []admissionv1.Validation{{
		Reason:     &forbidden,
		Expression: "has(namespaceObject.metadata.deletionTimestamp)",
		MessageExpression: "'Cluster ' + oldObject.metadata.name + ' is protected from deletion. To delete it, first " +
			"run: kubectl annotate cluster ' + oldObject.metadata.name +" +
			" ' --namespace ' + request.namespace + ' " + v1alpha1.AnnotationDeletionProtection + "-'",
	}}
	return p
}
