package v1alpha1

import corev1 "k8s.io/api/core/v1"

// ManagedSpec is what the operator keeps for the users of a cluster.
//
// +kubebuilder:validation:XValidation:rule="!has(self.roles) || self.roles.size() == 0",message="spec.managed.roles is not supported yet: accounts would be missing; remove it and make them yourself (kubectl cnmsql mysql CLUSTER)"
type ManagedSpec struct {
	// Services that lead clients to the instances of a role.
	// +optional
	Services *ManagedServices `json:"services,omitempty"`

	// Roles are not supported yet: there are none.
	// +kubebuilder:validation:MaxItems=1024
	// +optional
	Roles []Unsupported `json:"roles,omitempty"`
}

// ManagedServices changes the default Services <cluster>-rw, <cluster>-ro and
// <cluster>-r, and adds others.
type ManagedServices struct {
	// DisabledDefaultServices are not made, and deleted if they are there.
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:XValidation:rule="!self.exists(s, s == 'rw')",message="spec.managed.services.disabledDefaultServices cannot name rw: the operator leads writes by it; disable ro or r"
	// +listType=set
	// +optional
	DisabledDefaultServices []ServiceSelector `json:"disabledDefaultServices,omitempty"`

	// Template is merged onto the default Services.
	// +optional
	Template *ServiceTemplate `json:"template,omitempty"`

	// Additional Services, each named <cluster>-<name>.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Additional []AdditionalService `json:"additional,omitempty"`
}

// ServiceSelector tells whom a Service leads to: rw to the primary, ro to the replicas
// that may be read from, r to all that may be read from.
//
// +kubebuilder:validation:Enum=rw;ro;r
type ServiceSelector string

// The selectors.
const (
	SelectReadWrite ServiceSelector = "rw"
	SelectReadOnly  ServiceSelector = "ro"
	SelectRead      ServiceSelector = "r"
)

// AdditionalService is a Service beside the default ones.
type AdditionalService struct {
	// Name of the Service behind "<cluster>-".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=61
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of an additional Service may hold only lower-case letters, digits and '-', and begin and end with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="!(self in ['rw', 'ro', 'r'])",message="an additional Service cannot be named rw, ro or r: those are the default Services; choose another name"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]+$')",message="an additional Service cannot be named by a number alone: those are the Services of the instances; choose another name"
	Name string `json:"name"`

	// SelectorType tells whom it leads to.
	SelectorType ServiceSelector `json:"selectorType"`

	// ServiceTemplate is what the Service is besides.
	// +optional
	ServiceTemplate *ServiceTemplate `json:"serviceTemplate,omitempty"`

	// UpdateStrategy tells what the template is laid on: with patch on what every object
	// of the cluster inherits (spec.inheritedMetadata), with replace on nothing but the
	// operator's own labels.
	// +kubebuilder:validation:Enum=patch;replace
	// +kubebuilder:default=patch
	// +optional
	UpdateStrategy string `json:"updateStrategy,omitempty"`
}

// UpdateReplace is the strategy by which a Service inherits nothing.
const UpdateReplace = "replace"

// ServiceTemplate is what a user may say about a Service. Selector, ports and addresses
// are the operator's.
type ServiceTemplate struct {
	// +optional
	Metadata ServiceTemplateMetadata `json:"metadata,omitempty"`
	// +optional
	Spec ServiceTemplateSpec `json:"spec,omitempty"`
}

// ServiceTemplateMetadata is laid on the metadata of a Service; the operator's own
// labels win. Names that begin with mysql.cnmsql.co/ or cnmsql.cnmsql.co/ are left out.
type ServiceTemplateMetadata struct {
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ServiceTemplateSpec is laid on the spec of a Service.
//
// +kubebuilder:validation:XValidation:rule="(has(self.type) && self.type == 'ExternalName') == has(self.externalName)",message="externalName and type ExternalName belong together: give both or neither"
// +kubebuilder:validation:XValidation:rule="!has(self.externalTrafficPolicy) || (has(self.type) && self.type in ['NodePort', 'LoadBalancer'])",message="externalTrafficPolicy needs type NodePort or LoadBalancer"
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancerSourceRanges) || (has(self.type) && self.type == 'LoadBalancer')",message="loadBalancerSourceRanges needs type LoadBalancer"
// +kubebuilder:validation:XValidation:rule="!has(self.healthCheckNodePort) || (has(self.type) && self.type == 'LoadBalancer' && has(self.externalTrafficPolicy) && self.externalTrafficPolicy == 'Local')",message="healthCheckNodePort needs type LoadBalancer and externalTrafficPolicy Local"
type ServiceTemplateSpec struct {
	// Type of the Service; ClusterIP when it is empty.
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer;ExternalName
	// +optional
	Type corev1.ServiceType `json:"type,omitempty"`

	// ExternalTrafficPolicy tells whether traffic from outside may be passed on to
	// other nodes.
	// +kubebuilder:validation:Enum=Cluster;Local
	// +optional
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`

	// SessionAffinity by the client's address, or none.
	// +kubebuilder:validation:Enum=None;ClientIP
	// +optional
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// LoadBalancerSourceRanges are the addresses that may use the load balancer.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`

	// ExternalName is the name that a Service of type ExternalName stands for.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ExternalName string `json:"externalName,omitempty"`

	// HealthCheckNodePort of a load balancer whose traffic stays on the node.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	HealthCheckNodePort int32 `json:"healthCheckNodePort,omitempty"`
}
