package v1alpha1

// Modes of replication.
const (
	ReplicationAsync = "async"
	ReplicationGroup = "groupReplication"
)

// What becomes of a group of which all members were lost, and are back.
const (
	TotalOutageManual    = "Manual"
	TotalOutageAutomatic = "Automatic"
)

// ReplicationSpec chooses the topology.
//
// +kubebuilder:validation:XValidation:rule="!has(self.groupReplication) || self.mode == 'groupReplication'",message="spec.replication.groupReplication needs spec.replication.mode: groupReplication; remove it, or create the Cluster with that mode"
// +kubebuilder:validation:XValidation:rule="(has(self.groupReplication) && has(self.groupReplication.groupName)) == (has(oldSelf.groupReplication) && has(oldSelf.groupReplication.groupName)) && (!(has(self.groupReplication) && has(self.groupReplication.groupName)) || self.groupReplication.groupName == oldSelf.groupReplication.groupName)",message="spec.replication.groupReplication.groupName cannot be changed once the Cluster exists: members with another name are another group; create a new Cluster"
type ReplicationSpec struct {
	// Mode is how instances replicate: async from a primary to its replicas
	// (semi-synchronously when mysql.semiSync says so), or as members of a MySQL
	// group. It cannot be changed.
	// +kubebuilder:default=async
	// +kubebuilder:validation:Enum=async;groupReplication
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.replication.mode cannot be changed: create a new Cluster with the other mode and move the data"
	// +optional
	Mode string `json:"mode,omitempty"`

	// GroupReplication configures the group.
	// +optional
	GroupReplication *GroupReplicationSpec `json:"groupReplication,omitempty"`

	// Heartbeat is not supported: there is none.
	// +kubebuilder:validation:XValidation:rule="has(self.enabled) && !self.enabled",message="spec.replication.heartbeat is not supported: how far a replica lags is told by the server itself, without a heartbeat table; remove it, or set enabled: false"
	// +optional
	Heartbeat *FixedHeartbeat `json:"heartbeat,omitempty"`
}

// GroupReplicationSpec configures a group with one primary.
type GroupReplicationSpec struct {
	// Consistency that the group guarantees to transactions.
	// +kubebuilder:default=BEFORE_ON_PRIMARY_FAILOVER
	// +kubebuilder:validation:Enum=EVENTUAL;BEFORE_ON_PRIMARY_FAILOVER;BEFORE;AFTER;BEFORE_AND_AFTER
	// +optional
	Consistency string `json:"consistency,omitempty"`

	// ExitStateAction is what a member does that was expelled or cannot go on.
	// +kubebuilder:default=READ_ONLY
	// +kubebuilder:validation:Enum=READ_ONLY;OFFLINE_MODE;ABORT_SERVER
	// +optional
	ExitStateAction string `json:"exitStateAction,omitempty"`

	// AutoRejoinTries is how often mysqld of an expelled member tries by itself to
	// come back, five minutes apart. With 0, its instance manager has it join again at once.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2016
	// +optional
	AutoRejoinTries *int32 `json:"autoRejoinTries,omitempty"`

	// GroupName is the UUID of the group; made by the operator when empty. A Cluster with
	// bootstrap.recovery takes none from here: the group that the data are of may go on with it.
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`
	// +optional
	GroupName string `json:"groupName,omitempty"`

	// MemberExpelTimeoutSeconds is how many seconds a member may be suspected,
	// after the five seconds of detection, before the group goes on without it.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +optional
	MemberExpelTimeoutSeconds *int32 `json:"memberExpelTimeoutSeconds,omitempty"`

	// UnreachableMajorityTimeoutSeconds is how many seconds a member that lost
	// the majority lets transactions wait before it rolls them back and leaves;
	// 0 waits for the majority to come back.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	UnreachableMajorityTimeoutSeconds *int32 `json:"unreachableMajorityTimeoutSeconds,omitempty"`

	// RecoverTotalOutage is who has the group rebooted when all its members were
	// down at once, as after a power failure. Manual waits for a human's word
	// (kubectl cnmsql group recover). With Automatic the operator does it by itself,
	// once per outage, when every instance answers and is in no group, and one of
	// them holds all that the others hold. It leaves it to a human where an instance
	// is fenced, has diverged, was left out or has lost its data, and where a
	// transaction is missing that was seen before.
	// +kubebuilder:default=Manual
	// +kubebuilder:validation:Enum=Manual;Automatic
	// +optional
	RecoverTotalOutage string `json:"recoverTotalOutage,omitempty"`

	FixedGroupFields `json:",inline"`
}

// GroupReplicationStatus is the group as the majority of its members sees it.
type GroupReplicationStatus struct {
	// GroupName is pinned before the group is first made.
	// +optional
	GroupName string `json:"groupName,omitempty"`
	// Bootstrapper is the one instance that may make the group. It is named when
	// no instance holds data, and a wish for another primary does not change it.
	// +optional
	Bootstrapper string `json:"bootstrapper,omitempty"`
	// Bootstrapped: the group was made. It is never made a second time.
	// +optional
	Bootstrapped bool `json:"bootstrapped,omitempty"`
	// PrimaryMember is the instance that the group elected.
	// +optional
	PrimaryMember string `json:"primaryMember,omitempty"`
	// HasQuorum: a majority of the group is seen to be online and to agree.
	HasQuorum bool `json:"hasQuorum"`
	// ViewID changes with every change of the membership.
	// +optional
	ViewID string `json:"viewId,omitempty"`
	// ObservedViewMax is the largest size of the group that was seen; a majority
	// is counted of it. It shrinks only when instances are removed on purpose.
	// +optional
	ObservedViewMax int32 `json:"observedViewMax,omitempty"`
	// ObservedOnlineMax is how many members were online at most.
	// +optional
	ObservedOnlineMax int32 `json:"observedOnlineMax,omitempty"`
	// LeftOut are instances that the group went on without when it was recovered, on a
	// human's word or by the operator itself. They have no say in what is true until the group has taken them back.
	// +optional
	LeftOut []LeftOutMember `json:"leftOut,omitempty"`
	// Recoveries are the last times that the group went on without some of its members, the
	// oldest first.
	// +optional
	Recoveries []GroupRecovery `json:"recoveries,omitempty"`
	// NewInstances are those that were made and have not been given data yet: they were never
	// members, and no majority is counted of them.
	// +optional
	NewInstances []string `json:"newInstances,omitempty"`
	// TotalOutageTried is the instance that the operator has told by itself to make the
	// group again. It is not told a second time; empty again once the group has its quorum.
	// +optional
	TotalOutageTried string `json:"totalOutageTried,omitempty"`
	// +optional
	Members []GroupMember `json:"members,omitempty"`
}

// GroupRecovery is when a group went on without some of its members.
type GroupRecovery struct {
	// Epoch in which it did.
	Epoch int64 `json:"epoch"`
	// Held is the GTID set of those who went on, at that moment. Transactions beyond it may
	// have numbers that stood for others before; the archive of binary logs tells them apart
	// by it.
	// +optional
	Held string `json:"held,omitempty"`
	// Pending: the group was not seen since this was ordered. If it is seen as it was before, the
	// recovery came to nothing, and is forgotten.
	// +optional
	Pending bool `json:"pending,omitempty"`
}

// LeftOutMember is an instance that the group went on without when it was recovered.
type LeftOutMember struct {
	Instance string `json:"instance"`
	// Held is the GTID set of those who went on, at that moment. Transactions that the
	// instance holds beyond it are not the group's, even if the group has given the same
	// numbers since.
	// +optional
	Held string `json:"held,omitempty"`
	// HeldTogether is the GTID set of all that any of them held at that moment.
	// +optional
	HeldTogether string `json:"heldTogether,omitempty"`
	// Admitted: it was found to hold nothing else than the group, and may join again.
	// +optional
	Admitted bool `json:"admitted,omitempty"`
}

// GroupMember is an instance in the group.
type GroupMember struct {
	Instance string `json:"instance"`
	// State in the group: ONLINE, RECOVERING, OFFLINE, ERROR, UNREACHABLE, or
	// UNKNOWN when nobody could be asked.
	State string `json:"state"`
	// Role is PRIMARY, SECONDARY, or empty.
	Role string `json:"role"`
	// Address of the instance's Pod: members let nobody else speak with them.
	// +optional
	Address string `json:"address,omitempty"`
	// Reachable: the operator hears the instance's manager.
	Reachable bool `json:"reachable"`
	// Leaving: it is on its way out of the group, or is about to be told to leave. Nobody counts on it.
	// +optional
	Leaving bool `json:"leaving,omitempty"`
}
