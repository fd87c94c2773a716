package v1alpha1

// Values of SemiSyncSpec.DataDurability.
const (
	DurabilityPreferred = "preferred"
	DurabilityRequired  = "required"
	DurabilityQuorum    = "quorum"
)

// MySQLSpec configures the server.
//
// +kubebuilder:validation:XValidation:rule="!has(self.additionalConfigFiles) || self.additionalConfigFiles.size() == 0",message="spec.mysql.additionalConfigFiles is not supported yet; put what they set into spec.mysql.parameters"
type MySQLSpec struct {
	// Parameters are written into my.cnf. Those that the operator owns, or that
	// would break replication, are refused by the validating policy
	// cnmsql-cluster-parameters.
	// +kubebuilder:validation:MaxProperties=256
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`

	// BinlogFormat is how changes are written to the binary log.
	// +kubebuilder:default=ROW
	// +kubebuilder:validation:Enum=ROW;STATEMENT;MIXED
	// +optional
	BinlogFormat string `json:"binlogFormat,omitempty"`

	// SemiSync makes a commit wait until replicas have it. Without effect in a group,
	// where a majority of the members receives a transaction before it commits.
	// +optional
	SemiSync *SemiSyncSpec `json:"semiSync,omitempty"`

	// AdditionalConfigFiles is not supported yet: there are none.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	AdditionalConfigFiles map[string]string `json:"additionalConfigFiles,omitempty"`
}

// SemiSyncSpec makes a commit wait for replicas.
//
// +kubebuilder:validation:XValidation:rule="!has(self.timeoutMillis) || self.dataDurability != 'quorum'",message="spec.mysql.semiSync.timeoutMillis has no meaning under dataDurability quorum, which never falls back to asynchronous replication; remove it"
type SemiSyncSpec struct {
	// Enabled turns semi-synchronous replication on.
	// +kubebuilder:default=false
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// TimeoutMillis is how long a commit waits under "preferred" and
	// "required" before replication falls back to asynchronous. "quorum"
	// never falls back.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TimeoutMillis *int32 `json:"timeoutMillis,omitempty"`

	// DataDurability decides what happens when replicas are missing:
	// "preferred" goes on with fewer acknowledgements, "required" waits
	// timeoutMillis and falls back to asynchronous, "quorum" waits for ever
	// and so loses no acknowledged write to any minority of failures.
	// +kubebuilder:default=preferred
	// +kubebuilder:validation:Enum=preferred;required;quorum
	// +optional
	DataDurability string `json:"dataDurability,omitempty"`
}
