package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is a set of MySQL instances of which one, the primary, takes writes
// and the others replicate from it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusters,singular=cluster,shortName=mysql;mysqlcluster,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.instances,statuspath=.status.instances,selectorpath=.status.labelSelector
// +kubebuilder:printcolumn:name="Instances",type=integer,JSONPath=`.status.instances`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyInstances`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Primary",type=string,JSONPath=`.status.currentPrimary`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 50",message="metadata.name is longer than 50 characters: the names of Pods, Services and certificates are made from it; choose a shorter name"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must begin with a letter and hold only lower-case letters, digits and '-' (no '.'): the names of Services are made from it"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.managed) || !has(self.spec.managed.services) || !has(self.spec.managed.services.additional) || self.spec.managed.services.additional.all(s, self.metadata.name.size() + s.name.size() <= 62)",message="the name of an additional Service is the Cluster's, '-' and its own, which are more than 63 characters together; choose a shorter name in spec.managed.services.additional"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.bootstrap) || !has(self.spec.bootstrap.recovery) || !has(self.spec.bootstrap.recovery.source) || (has(self.spec.externalClusters) && self.spec.externalClusters.exists(e, e.name == self.spec.bootstrap.recovery.source && (has(e.objectStore) || has(e.connectionParameters)))) || (has(self.status) && has(self.status.establishedAt) && !(has(self.status.promotion) && has(self.status.promotion.follows) && self.status.promotion.follows.size() > 0)) || !(has(oldSelf.spec.externalClusters) && oldSelf.spec.externalClusters.exists(e, e.name == self.spec.bootstrap.recovery.source && (has(e.objectStore) || has(e.connectionParameters))))",message="spec.bootstrap.recovery.source must name one of spec.externalClusters that has an objectStore or connectionParameters: add it there, and leave it there until the Cluster has its data and, if it follows that server, has taken over"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.replica) || (has(self.spec.replica.enabled) && !self.spec.replica.enabled) || !has(self.status) || !has(self.status.promotion) || (has(self.status.promotion.follows) && self.status.promotion.follows.size() > 0) || (oldSelf.hasValue() && has(oldSelf.value().spec.replica) && (!has(oldSelf.value().spec.replica.enabled) || oldSelf.value().spec.replica.enabled))",message="spec.replica.enabled cannot be true: this Cluster takes writes of its own, and would lose them; remove spec.replica, or create a new Cluster to follow another server",optionalOldSelf=true
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Required
	Spec ClusterSpec `json:"spec"`
	// +optional
	Status ClusterStatus `json:"status,omitempty"`

	// UnreadWhy tells what of it could not be read; "" if all was. It is nothing of the API.
	UnreadWhy string `json:"-"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}

// ClusterSpec is what the user wants.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minSyncReplicas) || self.minSyncReplicas < self.instances",message="spec.minSyncReplicas must be smaller than spec.instances: only replicas acknowledge; lower minSyncReplicas or raise instances"
// +kubebuilder:validation:XValidation:rule="!has(self.minSyncReplicas) || !has(self.maxSyncReplicas) || self.minSyncReplicas <= self.maxSyncReplicas",message="spec.minSyncReplicas must not be larger than spec.maxSyncReplicas; lower the one or raise the other"
// +kubebuilder:validation:XValidation:rule="!has(self.maxSyncReplicas) || self.maxSyncReplicas < self.instances",message="spec.maxSyncReplicas must be smaller than spec.instances: only replicas acknowledge; lower maxSyncReplicas or raise instances"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || !has(self.bootstrap) || !has(self.bootstrap.recovery) || !has(self.bootstrap.recovery.source) || (has(self.externalClusters) && self.externalClusters.exists(e, e.name == self.bootstrap.recovery.source && (has(e.objectStore) || has(e.connectionParameters))))",message="spec.bootstrap.recovery.source must name one of spec.externalClusters that has an objectStore or connectionParameters: add it there, and leave it there until the Cluster has its data and, if it follows that server, has taken over",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="!has(self.bootstrap) || !has(self.bootstrap.recovery) || !has(self.bootstrap.recovery.source) || (!has(self.bootstrap.recovery.backupID) && !has(self.bootstrap.recovery.recoveryTarget)) || !has(self.externalClusters) || !self.externalClusters.exists(e, e.name == self.bootstrap.recovery.source && has(e.connectionParameters))",message="spec.bootstrap.recovery.backupID and recoveryTarget go with backups, and spec.bootstrap.recovery.source is a running server, which is copied as it is; remove them"
// +kubebuilder:validation:XValidation:rule="!has(self.replica) || (has(self.replica.enabled) && !self.replica.enabled) || (has(self.bootstrap) && has(self.bootstrap.recovery) && has(self.bootstrap.recovery.source) && has(self.replica.source) && self.replica.source == self.bootstrap.recovery.source && has(self.externalClusters) && self.externalClusters.exists(e, e.name == self.replica.source && has(e.connectionParameters)))",message="spec.replica follows the running server whose data the Cluster begins with: spec.replica.source and spec.bootstrap.recovery.source must name the same one of spec.externalClusters, and that must have connectionParameters"
// +kubebuilder:validation:XValidation:rule="!has(self.replica) || (has(self.replica.enabled) && !self.replica.enabled) || !has(self.replication) || self.replication.mode != 'groupReplication'",message="spec.replica does not go with spec.replication.mode groupReplication: a group follows no other server; remove one of the two"
// +kubebuilder:validation:XValidation:rule="has(self.bootstrap) == has(oldSelf.bootstrap)",message="spec.bootstrap is used once, when the cluster is first made, and can neither be added nor removed afterwards; create a new Cluster instead"
// +kubebuilder:validation:XValidation:rule="!has(self.minSyncReplicas) || (has(self.mysql) && has(self.mysql.semiSync) && self.mysql.semiSync.enabled) || self.minSyncReplicas == 0 || (has(self.replication) && self.replication.mode == 'groupReplication')",message="spec.minSyncReplicas needs spec.mysql.semiSync.enabled: true; without semi-synchronous replication no replica acknowledges"
// +kubebuilder:validation:XValidation:rule="!has(self.maxSyncReplicas) || (has(self.mysql) && has(self.mysql.semiSync) && self.mysql.semiSync.enabled) || self.maxSyncReplicas == 0 || (has(self.replication) && self.replication.mode == 'groupReplication')",message="spec.maxSyncReplicas needs spec.mysql.semiSync.enabled: true; without semi-synchronous replication no replica acknowledges"
// +kubebuilder:validation:XValidation:rule="!has(self.maxSyncReplicas) || !has(self.mysql) || !has(self.mysql.semiSync) || self.mysql.semiSync.dataDurability != 'quorum' || self.maxSyncReplicas >= self.instances / 2 || (has(self.replication) && self.replication.mode == 'groupReplication')",message="spec.maxSyncReplicas must be at least half of spec.instances (rounded down) under dataDurability quorum: fewer acknowledgements could all be lost with a minority; raise or remove maxSyncReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.backup) || !has(self.backup.continuousArchiving) || !self.backup.continuousArchiving.enabled || !has(self.mysql) || !has(self.mysql.binlogFormat) || self.mysql.binlogFormat != 'STATEMENT'",message="spec.backup.continuousArchiving cannot go with spec.mysql.binlogFormat STATEMENT: a statement that reads a temporary table, or one of another engine than InnoDB, finds other rows when the archive is replayed; set binlogFormat: ROW (or MIXED), or continuousArchiving.enabled: false"
// +kubebuilder:validation:XValidation:rule="!has(self.replication) || self.replication.mode != 'groupReplication' || !has(self.mysql) || self.mysql.binlogFormat == 'ROW'",message="spec.mysql.binlogFormat must be ROW with spec.replication.mode groupReplication: members certify transactions by their rows; remove binlogFormat"
// +kubebuilder:validation:XValidation:rule="!has(self.mysql) || !has(self.mysql.semiSync) || self.mysql.semiSync.enabled || self.mysql.semiSync.dataDurability == 'preferred' || (has(self.replication) && self.replication.mode == 'groupReplication') || (oldSelf.hasValue() && has(oldSelf.value().mysql) && has(oldSelf.value().mysql.semiSync) && !oldSelf.value().mysql.semiSync.enabled && oldSelf.value().mysql.semiSync.dataDurability == self.mysql.semiSync.dataDurability)",message="spec.mysql.semiSync.dataDurability has no effect without enabled: true, because commits then wait for no replica; set enabled: true, or remove dataDurability",optionalOldSelf=true
type ClusterSpec struct {
	// Description is free text for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`

	// Instances is the number of MySQL instances, the primary included. Three
	// is the least with which a failure is survived without a human.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	// +optional
	Instances int32 `json:"instances,omitempty"`

	// ImageName is the image that holds mysqld, 8.0.22 or later. MySQL 9.7.4 and
	// 8.0.45 of Debian have run; 8.4, Percona Server and MySQL's own images are
	// expected to work and were never tried. When it is empty, a new Cluster
	// gets the operator's default, and one that has data keeps its image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ImageName string `json:"imageName,omitempty"`

	// ImagePullPolicy of the image that holds mysqld.
	// +kubebuilder:validation:Enum=Always;Never;IfNotPresent
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecrets name Secrets of this namespace for pulling the image.
	// +optional
	ImagePullSecrets []LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Storage is the volume of each instance.
	// +kubebuilder:validation:Required
	Storage StorageSpec `json:"storage"`

	// Resources of the mysqld container. Buffer pool and worker counts follow
	// from them unless mysql.parameters says otherwise.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// MySQL configures the server.
	// +optional
	// +kubebuilder:default={}
	MySQL MySQLSpec `json:"mysql,omitempty"`

	// MinSyncReplicas is the number of replicas that must acknowledge a commit
	// when semi-synchronous replication is enabled. Without effect in a group.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinSyncReplicas *int32 `json:"minSyncReplicas,omitempty"`

	// MaxSyncReplicas caps the number of replicas that a commit waits for. Without
	// effect in a group.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxSyncReplicas *int32 `json:"maxSyncReplicas,omitempty"`

	// Bootstrap tells where the first data comes from; without it a new, empty
	// server with the database "app" and its owner "app" is made.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.bootstrap is used once, when the cluster is first made, and cannot be changed; create a new Cluster instead"
	Bootstrap *BootstrapSpec `json:"bootstrap,omitempty"`

	// Backup is where backups of this Cluster go, and how they are made.
	// +optional
	Backup *BackupDefaults `json:"backup,omitempty"`

	// Replica has the primary follow the running server that bootstrap.recovery.source
	// names, once its data were copied, and take no writes.
	// +optional
	Replica *ReplicaSpec `json:"replica,omitempty"`
	// ExternalClusters are those whose backups this one may begin with.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	ExternalClusters []ExternalCluster `json:"externalClusters,omitempty"`

	// Replication chooses the topology.
	// +optional
	// +kubebuilder:default={}
	Replication ReplicationSpec `json:"replication,omitempty"`

	// FailoverDelay is how many seconds a primary may be failing before it is
	// replaced. 0 replaces it at once. Without effect in a group, which elects its
	// primary itself.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +optional
	FailoverDelay int32 `json:"failoverDelay,omitempty"`

	// FailoverPolicy bounds failovers. Without effect in a group.
	// +optional
	FailoverPolicy *FailoverPolicy `json:"failoverPolicy,omitempty"`

	// Managed is what the operator keeps for the users of the cluster.
	// +optional
	Managed *ManagedSpec `json:"managed,omitempty"`

	// ReadRouting bounds which replicas take reads.
	// +optional
	ReadRouting *ReadRoutingSpec `json:"readRouting,omitempty"`

	// MaxSwitchoverDelay is how many seconds a planned switchover may take
	// before the old primary is made writable again.
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxSwitchoverDelay int32 `json:"maxSwitchoverDelay,omitempty"`

	// MaxSwitchoverPause is how many seconds a planned switchover may stop
	// writes. It does not begin to before the new primary is expected to take
	// them in that time; if it does not, the old one takes them again. A group
	// cannot be called back once it elects: there it bounds what is expected.
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxSwitchoverPause int32 `json:"maxSwitchoverPause,omitempty"`

	// MaxStartDelay is how many seconds mysqld may take to accept connections
	// (crash recovery included) before it is killed and started again.
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=10
	// +optional
	MaxStartDelay int32 `json:"maxStartDelay,omitempty"`

	// MaxStopDelay is how many seconds an instance may take to stop before it
	// is killed.
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxStopDelay int32 `json:"maxStopDelay,omitempty"`

	// SmartShutdownTimeout is how many seconds a stopping replica lets open
	// client sessions finish before it closes them.
	// +kubebuilder:validation:Minimum=0
	// +optional
	SmartShutdownTimeout *int32 `json:"smartShutdownTimeout,omitempty"`

	// EnablePrimaryLease keeps a Lease named <cluster>-primary that the
	// primary holds while it is writable.
	// +kubebuilder:default=true
	// +optional
	EnablePrimaryLease *bool `json:"enablePrimaryLease,omitempty"`

	// InPlaceInstanceManagerUpdates lets the operator replace the instance
	// managers of an earlier release without restarting anything: each
	// becomes the new one while its mysqld runs on. Otherwise, another
	// release of the operator restarts the instances, one at a time.
	// +optional
	InPlaceInstanceManagerUpdates bool `json:"inPlaceInstanceManagerUpdates,omitempty"`

	// EnableSuperuserAccess lets root log in over the network with the
	// password in the Secret <cluster>-root. Otherwise root may log in only
	// inside the Pod, through the socket. Over the network TLS is required. It
	// counts when the cluster is made.
	// +kubebuilder:default=false
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.enableSuperuserAccess counts when the cluster is first made and cannot be changed; make or drop the account 'root'@'%' yourself (kubectl cnmsql mysql CLUSTER)"
	// +optional
	EnableSuperuserAccess bool `json:"enableSuperuserAccess,omitempty"`

	// EnablePDB keeps one PodDisruptionBudget over all instances.
	// +kubebuilder:default=true
	// +optional
	EnablePDB *bool `json:"enablePDB,omitempty"`

	// Affinity tells where instances may run.
	// +optional
	// +kubebuilder:default={}
	Affinity AffinitySpec `json:"affinity,omitempty"`

	// TopologySpreadConstraints of the Pods, as they are.
	// +optional
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// PriorityClassName of the Pods.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// Env is added to the mysqld container. Names that begin with MYSQL are refused, for
	// they do not reach mysqld.
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:XValidation:rule="self.all(e, !e.name.startsWith('MYSQL') || e.name == 'MYSQLD_PARENT_PID')",message="spec.env: names that begin with MYSQL do not reach mysqld; set spec.mysql.parameters for what mysqld reads, spec.bootstrap.initdb for accounts and databases, and remove them"
	// +kubebuilder:validation:XValidation:rule="self.all(e, !e.name.startsWith('CNMSQL_') && e.name != 'MYSQLD_PARENT_PID')",message="spec.env: names that begin with CNMSQL_ are the operator's, and so is MYSQLD_PARENT_PID; remove them"
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// Certificates of the instances.
	// +optional
	Certificates *CertificatesSpec `json:"certificates,omitempty"`

	// InheritedMetadata is put on every object made for the cluster, also on those
	// that are there already. What is taken out of it stays on Pods and volume
	// claims until they are recreated.
	// +optional
	InheritedMetadata *InheritedMetadata `json:"inheritedMetadata,omitempty"`

	// PodSecurityContext replaces the fields that it names in the security
	// context of the Pods, which is the restricted profile (user and group
	// 999), and leaves the others.
	// +optional
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`

	// SecurityContext replaces the fields that it names in the security context
	// of the containers, which is the restricted profile with a read-only root
	// file system, and leaves the others.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`

	// LogLevel of the instance managers.
	// +kubebuilder:default=info
	// +kubebuilder:validation:Enum=error;warning;info;debug;trace
	// +optional
	LogLevel string `json:"logLevel,omitempty"`

	// SchedulerName of the scheduler that places the Pods; the Kubernetes' default when empty.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	FixedClusterFields       `json:",inline"`
	UnsupportedClusterFields `json:",inline"`
}

// LocalObjectReference names an object in the Cluster's namespace.
type LocalObjectReference struct {
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// ReadRoutingSpec bounds which replicas the Services for reading lead to.
type ReadRoutingSpec struct {
	// MaxReplicationLag is how old what a replica applies may be for <cluster>-ro and
	// <cluster>-r to lead to it, for example 10s. It is led to again once it lags half
	// of that or less. The last instance behind <cluster>-r is never left out.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="spec.readRouting.maxReplicationLag must be at least 1s"
	// +optional
	MaxReplicationLag *metav1.Duration `json:"maxReplicationLag,omitempty"`
}

// StorageSpec describes the volume of an instance. Its size can grow, never shrink.
//
// +kubebuilder:validation:XValidation:rule="!has(self.size) || !has(oldSelf.size) || quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0",message="spec.storage.size cannot be lowered: a volume does not shrink; create a new Cluster with smaller storage and move the data"
// +kubebuilder:validation:XValidation:rule="has(self.storageClass) == has(oldSelf.storageClass) && (!has(self.storageClass) || self.storageClass == oldSelf.storageClass)",message="spec.storage.storageClass cannot be changed: existing volumes keep their class; create a new Cluster with the other class"
// +kubebuilder:validation:XValidation:rule="!has(self.pvcTemplate)",message="spec.storage.pvcTemplate is not supported yet; name size and storageClass"
type StorageSpec struct {
	// Size of the volume, for example 20Gi.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).compareTo(quantity('1Gi')) >= 0",message="spec.storage.size must be a quantity of at least 1Gi: an empty MySQL with its redo and binary logs fills about half of that"
	Size string `json:"size"`

	// StorageClass of the volume; the cluster's default class when empty.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClass *string `json:"storageClass,omitempty"`

	// ResizeInUseVolumes: existing volumes grow with Size, where their class allows it.
	// +kubebuilder:validation:XValidation:rule="self",message="spec.storage.resizeInUseVolumes cannot be false: volumes grow with spec.storage.size; remove it"
	// +optional
	ResizeInUseVolumes *bool `json:"resizeInUseVolumes,omitempty"`

	// WhenScaled tells what becomes of the volume of an instance that is removed
	// because spec.instances was lowered: Retain keeps its PersistentVolumeClaim,
	// which no instance uses again; Delete deletes it.
	// +kubebuilder:validation:Enum=Retain;Delete
	// +kubebuilder:default=Retain
	// +optional
	WhenScaled VolumeRetention `json:"whenScaled,omitempty"`

	// WhenDeleted tells what becomes of the volumes when the Cluster is deleted:
	// Retain keeps their PersistentVolumeClaims; Delete deletes them, and all data.
	// +kubebuilder:validation:Enum=Retain;Delete
	// +kubebuilder:default=Retain
	// +optional
	WhenDeleted VolumeRetention `json:"whenDeleted,omitempty"`

	// PVCTemplate is not supported yet.
	// +optional
	PVCTemplate *Unsupported `json:"pvcTemplate,omitempty"`
}

// VolumeRetention tells what becomes of a volume that no instance uses any more.
type VolumeRetention string

// What becomes of a volume that no instance uses any more.
const (
	RetainVolume VolumeRetention = "Retain"
	DeleteVolume VolumeRetention = "Delete"
)

// BootstrapSpec tells where the first data comes from.
//
// +kubebuilder:validation:XValidation:rule="has(self.initdb) || has(self.recovery)",message="spec.bootstrap.initdb is needed: spec.bootstrap tells where the first data comes from, and names nothing; add initdb or recovery, or remove spec.bootstrap"
// +kubebuilder:validation:XValidation:rule="!has(self.initdb) || !has(self.recovery) || (!has(self.initdb.characterSet) && !has(self.initdb.collation) && !has(self.initdb.postInitSQL))",message="spec.bootstrap.initdb beside recovery only names the application's database, owner and secret, which come with the backup; remove characterSet, collation and postInitSQL"
type BootstrapSpec struct {
	// InitDB makes a new, empty server. Beside recovery it names the database and the
	// owner that the restored data have for the application.
	// +optional
	InitDB *InitDBSpec `json:"initdb,omitempty"`

	// Recovery restores a backup.
	// +optional
	Recovery *RecoverySpec `json:"recovery,omitempty"`
}

// InitDBSpec describes what a new server begins with.
//
// +kubebuilder:validation:XValidation:rule="(has(self.owner) && self.owner.size() > 0) || has(self.secret) || !has(self.database) || (self.database.size() <= 32 && self.database != 'root' && !self.database.startsWith('cnmsql'))",message="spec.bootstrap.initdb.owner is needed: it is the database's name otherwise, which is longer than 32 characters or an account of the server or of the operator (root, cnmsql*)"
type InitDBSpec struct {
	// Database to create; "app" when empty.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-zA-Z_$-]*$`
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['mysql','sys','information_schema','performance_schema'])",message="spec.bootstrap.initdb.database must not be a schema of the server (mysql, sys, information_schema, performance_schema); choose another name"
	// +optional
	Database string `json:"database,omitempty"`

	// Owner is the account that owns the database; the database's name when empty.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!(self in ['root','mysql.sys','mysql.session','mysql.infoschema']) && !self.startsWith('cnmsql')",message="spec.bootstrap.initdb.owner must not be an account of the server or of the operator (root, mysql.*, cnmsql*); choose another name"
	// +optional
	Owner string `json:"owner,omitempty"`

	// Secret of type kubernetes.io/basic-auth with username and password of
	// the owner. One is made when empty: <cluster>-app, which cannot be named here.
	// +optional
	Secret *LocalObjectReference `json:"secret,omitempty"`

	// CharacterSet of the database; the server's default when empty.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9a-zA-Z_]*$`
	// +optional
	CharacterSet string `json:"characterSet,omitempty"`

	// Collation of the database; the character set's default when empty.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-zA-Z_]*$`
	// +optional
	Collation string `json:"collation,omitempty"`

	// PostInitSQL are statements that are run once, as root, after the
	// database was made.
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=16384
	// +optional
	PostInitSQL []string `json:"postInitSQL,omitempty"`
}

// AffinitySpec tells where instances may run.
type AffinitySpec struct {
	// EnablePodAntiAffinity keeps instances of one cluster apart.
	// +kubebuilder:default=true
	// +optional
	EnablePodAntiAffinity *bool `json:"enablePodAntiAffinity,omitempty"`

	// PodAntiAffinityType "required" leaves an instance pending rather than
	// let it share a topology domain with another.
	// +kubebuilder:default=preferred
	// +kubebuilder:validation:Enum=preferred;required
	// +optional
	PodAntiAffinityType string `json:"podAntiAffinityType,omitempty"`

	// TopologyKey is the node label whose values are the domains.
	// +kubebuilder:default="kubernetes.io/hostname"
	// +optional
	TopologyKey string `json:"topologyKey,omitempty"`

	// NodeSelector of the Pods.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// NodeAffinity of the Pods.
	// +optional
	NodeAffinity *corev1.NodeAffinity `json:"nodeAffinity,omitempty"`

	// Tolerations of the Pods.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// AdditionalPodAntiAffinity is added to the generated terms.
	// +optional
	AdditionalPodAntiAffinity *corev1.PodAntiAffinity `json:"additionalPodAntiAffinity,omitempty"`

	// AdditionalPodAffinity of the Pods.
	// +optional
	AdditionalPodAffinity *corev1.PodAffinity `json:"additionalPodAffinity,omitempty"`
}
