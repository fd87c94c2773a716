package v1alpha1

// LabelValue is what Kubernetes takes as the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="the value of a label holds only letters, digits, '-', '_' and '.', begins and ends with a letter or a digit, and has at most 63 of them: every object that is made with another one is refused"
type LabelValue string

// AnnotationValue is the value of an annotation, which is kept with the object that names it.
//
// +kubebuilder:validation:MaxLength=8192
type AnnotationValue string

// InheritedMetadata is what every made object carries besides the operator's own.
type InheritedMetadata struct {
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('mysql.cnmsql.co/') && !k.startsWith('cnmsql.cnmsql.co/'))",message="spec.inheritedMetadata.labels: names that begin with mysql.cnmsql.co/ or cnmsql.cnmsql.co/ are the operator's; remove them"
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('mysql.cnmsql.co/') && !k.startsWith('cnmsql.cnmsql.co/'))",message="spec.inheritedMetadata.annotations: names that begin with mysql.cnmsql.co/ or cnmsql.cnmsql.co/ are the operator's; remove them"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
