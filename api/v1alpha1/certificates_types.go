package v1alpha1

// CertificatesSpec adds to the certificates that the operator makes. Those of a user's own are
// not supported yet.
//
// +kubebuilder:validation:XValidation:rule="!has(self.serverCASecret) && !has(self.serverTLSSecret) && !has(self.clientCASecret) && !has(self.replicationTLSSecret)",message="spec.certificates: certificates of your own are not supported yet: the operator makes them itself; leave nothing but serverAltDNSNames"
type CertificatesSpec struct {
	// ServerAltDNSNames are names by which clients come to the instances besides those of
	// their Services: of a load balancer, or with the domain of your Kubernetes if that is
	// not cluster.local. The certificates of all instances are good for them.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +optional
	ServerAltDNSNames []string `json:"serverAltDNSNames,omitempty"`

	// ServerCASecret is not supported yet.
	// +optional
	ServerCASecret string `json:"serverCASecret,omitempty"`
	// ServerTLSSecret is not supported yet.
	// +optional
	ServerTLSSecret string `json:"serverTLSSecret,omitempty"`
	// ClientCASecret is not supported yet.
	// +optional
	ClientCASecret string `json:"clientCASecret,omitempty"`
	// ReplicationTLSSecret is not supported yet.
	// +optional
	ReplicationTLSSecret string `json:"replicationTLSSecret,omitempty"`
}
