package v1alpha1

// Unsupported is a field of manifests that this release does not do. It is declared, and
// refused by a rule: a client that does not ask for strict validation would otherwise have
// it dropped in silence, and a restore would become an empty database.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Unsupported struct{}

// UnsupportedClusterFields are refused wherever they are set; an empty list sets nothing.
//
// +kubebuilder:validation:XValidation:rule="!has(self.binlogStorage)",message="spec.binlogStorage is not supported yet: binary logs are on the instance's volume; remove it and make spec.storage.size larger"
// +kubebuilder:validation:XValidation:rule="!has(self.imageCatalogRef)",message="spec.imageCatalogRef is not supported yet; name the image in spec.imageName"
// +kubebuilder:validation:XValidation:rule="!has(self.rootPasswordSecret)",message="spec.rootPasswordSecret is not supported yet: root's password is made by the operator and is in the Secret CLUSTER-root, where you may change it; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.envFrom) || self.envFrom.size() == 0",message="spec.envFrom is not supported yet; name the variables in spec.env"
// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccountTemplate)",message="spec.serviceAccountTemplate is not supported yet; put labels and annotations into spec.inheritedMetadata"
type UnsupportedClusterFields struct {
	// BinlogStorage is not supported yet.
	// +optional
	BinlogStorage *Unsupported `json:"binlogStorage,omitempty"`
	// ImageCatalogRef is not supported yet.
	// +optional
	ImageCatalogRef *Unsupported `json:"imageCatalogRef,omitempty"`
	// RootPasswordSecret is not supported yet.
	// +optional
	RootPasswordSecret *Unsupported `json:"rootPasswordSecret,omitempty"`
	// EnvFrom is not supported yet: there are no sources.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	EnvFrom []Unsupported `json:"envFrom,omitempty"`
	// ServiceAccountTemplate is not supported yet.
	// +optional
	ServiceAccountTemplate *Unsupported `json:"serviceAccountTemplate,omitempty"`
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
	// Monitoring: each instance serves its metrics at port 9187.
	// +optional
	Monitoring *MonitoringSpec `json:"monitoring,omitempty"`
	// NodeMaintenanceWindow: there is none.
	// +optional
	NodeMaintenanceWindow *FixedMaintenanceWindow `json:"nodeMaintenanceWindow,omitempty"`
	// Upgrade: nothing is done before one.
	// +optional
	Upgrade *FixedUpgrade `json:"upgrade,omitempty"`
}

// MonitoringSpec asks for a PodMonitor, and takes what says that metrics are served as they are.
//
// +kubebuilder:validation:XValidation:rule="[has(self.disableDefaultQueries) && self.disableDefaultQueries, has(self.customQueriesConfigMap) && self.customQueriesConfigMap.size() > 0, has(self.customQueriesSecret) && self.customQueriesSecret.size() > 0, has(self.metricsQueriesTTL) && self.metricsQueriesTTL.size() > 0, has(self.tls) && has(self.tls.enabled) && self.tls.enabled].all(set, !set)",message="spec.monitoring can only ask for a PodMonitor and confirm the defaults: each instance serves the metrics of its manager at port 9187, without TLS and without queries of yours; have an exporter of your own for other queries; remove the field, or set it to false or to an empty list"
type MonitoringSpec struct {
	// EnablePodMonitor has a PodMonitor made, of the Cluster's name, by which Prometheus
	// (of the Prometheus Operator) asks the instances.
	// +optional
	EnablePodMonitor *bool `json:"enablePodMonitor,omitempty"`
	// DisableDefaultQueries: the metrics of an instance are always served.
	// +optional
	DisableDefaultQueries *bool `json:"disableDefaultQueries,omitempty"`
	// CustomQueriesConfigMap: there are no queries but the manager's own.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	CustomQueriesConfigMap []Unsupported `json:"customQueriesConfigMap,omitempty"`
	// CustomQueriesSecret: there are no queries but the manager's own.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	CustomQueriesSecret []Unsupported `json:"customQueriesSecret,omitempty"`
	// MetricsQueriesTTL is that of custom queries, which there are none.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	MetricsQueriesTTL string `json:"metricsQueriesTTL,omitempty"`
	// TLS: metrics are served without it.
	// +optional
	TLS *FixedMonitoringTLS `json:"tls,omitempty"`
}

// FixedMonitoringTLS takes what says that metrics are served without TLS.
type FixedMonitoringTLS struct {
	// Enabled: it is not.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// FixedMaintenanceWindow takes what says that there is no maintenance.
type FixedMaintenanceWindow struct {
	// InProgress: no maintenance is.
	// +kubebuilder:validation:XValidation:rule="!self",message="spec.nodeMaintenanceWindow.inProgress is not supported yet: a drain hands the primary over by itself; remove it, or set false"
	// +optional
	InProgress *bool `json:"inProgress,omitempty"`
	// ReusePVC: an instance comes back on its own volume.
	// +kubebuilder:validation:XValidation:rule="self",message="spec.nodeMaintenanceWindow.reusePVC cannot be false: an instance comes back on its own volume; remove it, and use kubectl cnmsql reinit to have its data copied anew"
	// +optional
	ReusePVC *bool `json:"reusePVC,omitempty"`
}

// FixedUpgrade takes what says that nothing is done before an upgrade.
type FixedUpgrade struct {
	// BackupBeforeUpgrade: none is made.
	// +kubebuilder:validation:XValidation:rule="!self",message="spec.upgrade.backupBeforeUpgrade is not supported yet: no backup is made before an upgrade; remove it, or set false, and make a Backup yourself before you change spec.imageName"
	// +optional
	BackupBeforeUpgrade *bool `json:"backupBeforeUpgrade,omitempty"`
}

// FixedHeartbeat takes what says that there is no heartbeat table.
type FixedHeartbeat struct {
	// Enabled: it is not.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Interval is that of a heartbeat; without one it says nothing.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Interval string `json:"interval,omitempty"`
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
