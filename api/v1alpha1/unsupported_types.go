package v1alpha1

// Unsupported is a field of manifests that this release does not do. It is declared, and
// refused by a rule: a client that does not ask for strict validation would otherwise have
// it dropped in silence, and a restore would become an empty database.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Unsupported struct{}

// UnsupportedClusterFields are refused wherever they are set.
//
// +kubebuilder:validation:XValidation:rule="!has(self.replica)",message="spec.replica is not supported yet: this Cluster would be a second primary and not a replica of another; remove it to make an independent Cluster"
// +kubebuilder:validation:XValidation:rule="!has(self.binlogStorage)",message="spec.binlogStorage is not supported yet: binary logs are on the instance's volume; remove it and make spec.storage.size larger"
// +kubebuilder:validation:XValidation:rule="!has(self.imageCatalogRef)",message="spec.imageCatalogRef is not supported yet; name the image in spec.imageName"
// +kubebuilder:validation:XValidation:rule="!has(self.rootPasswordSecret)",message="spec.rootPasswordSecret is not supported yet: root's password is made by the operator and is in the Secret CLUSTER-root, where you may change it; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.envFrom)",message="spec.envFrom is not supported yet; name the variables in spec.env"
// +kubebuilder:validation:XValidation:rule="!has(self.monitoring)",message="spec.monitoring is not supported yet: each instance serves its metrics at port 9187 for a PodMonitor of your own; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.nodeMaintenanceWindow)",message="spec.nodeMaintenanceWindow is not supported yet: a drain hands the primary over by itself; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccountTemplate)",message="spec.serviceAccountTemplate is not supported yet; put labels and annotations into spec.inheritedMetadata"
// +kubebuilder:validation:XValidation:rule="!has(self.upgrade)",message="spec.upgrade is not supported yet: no backup is made before an upgrade; remove it"
type UnsupportedClusterFields struct {
	// Replica is not supported yet.
	// +optional
	Replica *Unsupported `json:"replica,omitempty"`
	// BinlogStorage is not supported yet.
	// +optional
	BinlogStorage *Unsupported `json:"binlogStorage,omitempty"`
	// ImageCatalogRef is not supported yet.
	// +optional
	ImageCatalogRef *Unsupported `json:"imageCatalogRef,omitempty"`
	// RootPasswordSecret is not supported yet.
	// +optional
	RootPasswordSecret *Unsupported `json:"rootPasswordSecret,omitempty"`
	// EnvFrom is not supported yet.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	EnvFrom []Unsupported `json:"envFrom,omitempty"`
	// Monitoring is not supported yet.
	// +optional
	Monitoring *Unsupported `json:"monitoring,omitempty"`
	// NodeMaintenanceWindow is not supported yet.
	// +optional
	NodeMaintenanceWindow *Unsupported `json:"nodeMaintenanceWindow,omitempty"`
	// ServiceAccountTemplate is not supported yet.
	// +optional
	ServiceAccountTemplate *Unsupported `json:"serviceAccountTemplate,omitempty"`
	// Upgrade is not supported yet.
	// +optional
	Upgrade *Unsupported `json:"upgrade,omitempty"`
}

// FixedClusterFields take the one value that says what the operator does anyway, so that
// manifests that name it apply unchanged.
type FixedClusterFields struct {
	// Flavor of the server: MySQL, or Percona Server, which is one.
	// +kubebuilder:validation:Enum=mysql
	// +optional
	Flavor string `json:"flavor,omitempty"`
	// EnableSwitchoverOnDrain: a primary that is evicted hands over first.
	// +kubebuilder:validation:XValidation:rule="self",message="spec.enableSwitchoverOnDrain cannot be false: a primary that is evicted always hands over first; remove it"
	// +optional
	EnableSwitchoverOnDrain *bool `json:"enableSwitchoverOnDrain,omitempty"`
	// PrimaryUpdateStrategy: instances are restarted without asking anybody.
	// +kubebuilder:validation:Enum=unsupervised
	// +optional
	PrimaryUpdateStrategy string `json:"primaryUpdateStrategy,omitempty"`
	// PrimaryUpdateMethod: the primary hands over before it is restarted.
	// +kubebuilder:validation:Enum=switchover
	// +optional
	PrimaryUpdateMethod string `json:"primaryUpdateMethod,omitempty"`
}

// FixedGroupFields take the one value that a group has here, so that several primaries are
// refused and not dropped in silence: a group has one primary, and all others refuse writes.
type FixedGroupFields struct {
	// MultiPrimary is reserved: a group has one primary.
	// +kubebuilder:validation:XValidation:rule="!self",message="spec.replication.groupReplication.multiPrimary is not supported: a group has one primary; remove it, and have clients write through <cluster>-rw"
	// +optional
	MultiPrimary *bool `json:"multiPrimary,omitempty"`
	// SinglePrimaryMode is the same, as the server's variable says it.
	// +kubebuilder:validation:XValidation:rule="self",message="spec.replication.groupReplication.singlePrimaryMode cannot be false: a group has one primary; remove it, and have clients write through <cluster>-rw"
	// +optional
	SinglePrimaryMode *bool `json:"singlePrimaryMode,omitempty"`
	// EnforceUpdateEverywhereChecks are for groups of several primaries.
	// +kubebuilder:validation:XValidation:rule="!self",message="spec.replication.groupReplication.enforceUpdateEverywhereChecks is not supported: it is for groups of several primaries, and a group has one; remove it"
	// +optional
	EnforceUpdateEverywhereChecks *bool `json:"enforceUpdateEverywhereChecks,omitempty"`
}
