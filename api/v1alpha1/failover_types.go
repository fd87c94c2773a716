package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FailoverPolicy bounds failovers. A bound that forbids one leaves the cluster
// Blocked, with the bound's name, until the primary is back or the bound is changed.
type FailoverPolicy struct {
	// MaxTransactionsBehind is how many of the transactions that the failed
	// primary was last known to have the new one may lack.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxTransactionsBehind *int64 `json:"maxTransactionsBehind,omitempty"`
	// MaxReplicationLag is how old what the new primary applies may be.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="a duration is like 10m"
	// +optional
	MaxReplicationLag *metav1.Duration `json:"maxReplicationLag,omitempty"`
	// PreferredPrimary names instances, best first. Among equals the best wins, and
	// a primary is exchanged for a better one when it has been stable.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	PreferredPrimary []string `json:"preferredPrimary,omitempty"`
	// MinTimeBetweenFailovers is how long after a failover no other begins.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="a duration is like 10m"
	// +optional
	MinTimeBetweenFailovers *metav1.Duration `json:"minTimeBetweenFailovers,omitempty"`
	// PrimaryStabilityWindow is how long a primary must have been writable before it
	// is exchanged for a preferred one.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="a duration is like 10m"
	// +optional
	PrimaryStabilityWindow *metav1.Duration `json:"primaryStabilityWindow,omitempty"`
}
