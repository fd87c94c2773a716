package resources

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/declared"
)

// hash covers everything that takes effect only when the instance is started
// again: the Pod's spec, and what is rendered into my.cnf. It covers what the
// operator asks for, not what the API server made of it, so that an admission
// plugin's additions never look like a change. It leaves out the image of the
// manager, which may be replaced in place: see Installer.
func hash(c *v1alpha1.Cluster, spec corev1.PodSpec) string {
	spec.InitContainers = slices.Clone(spec.InitContainers)
	for i := range spec.InitContainers {
		if spec.InitContainers[i].Name == installerName {
			spec.InitContainers[i].Image = ""
		}
	}
	return sumOf(struct {
		Pod    corev1.PodSpec
		Config config
	}{spec, configOf(c)})
}

// config is what of a Cluster is rendered into my.cnf.
type config struct {
	Parameters   map[string]string
	BinlogFormat string
	SemiSync     *v1alpha1.SemiSyncSpec
	Group        *v1alpha1.GroupReplicationSpec `json:",omitempty"`
	BinlogExpire *int64                         `json:",omitempty"`
	BinlogSize   *int32                         `json:",omitempty"`
}

func configOf(c *v1alpha1.Cluster) config {
	var group *v1alpha1.GroupReplicationSpec
	if declared.Topology(&c.Spec).RunsGroup() {
		group = membersOnly(c.Spec.Replication.GroupReplication)
	}
	var archiving v1alpha1.ContinuousArchivingSpec
	if c.Spec.Backup.Archives() {
		archiving = *c.Spec.Backup.ContinuousArchiving
	}
	parameters := c.Spec.MySQL.Parameters
	if len(parameters) == 0 {
		parameters = nil // "parameters: {}" says what its absence says
	}
	return config{
		Parameters:   parameters,
		BinlogFormat: c.Spec.MySQL.BinlogFormat,
		SemiSync:     declared.SemiSynchronous(&c.Spec),
		Group:        group,
		BinlogExpire: archiving.BinlogExpireSeconds,
		BinlogSize:   archiving.MaxBinlogSizeMB,
	}
}

// inputHash covers what a Pod is built from, and not how: it stays the same where another release
// builds Pods otherwise. It covers all of the spec but what is known not to reach a Pod, so that a field
// that somebody forgets here restarts too many Pods and not too few. The order of fields in the types
// is nothing to it, for it is compared with those of other releases.
func inputHash(c *v1alpha1.Cluster, instance string, o PodOptions) string {
	spec := *c.Spec.DeepCopy()
	spec.Description, spec.Instances, spec.Storage = "", 0, v1alpha1.StorageSpec{}
	spec.MinSyncReplicas, spec.MaxSyncReplicas, spec.EnablePrimaryLease = nil, nil, nil
	spec.FailoverDelay, spec.FailoverPolicy, spec.ReadRouting = 0, nil, nil
	spec.MaxSwitchoverDelay, spec.MaxSwitchoverPause, spec.SmartShutdownTimeout = 0, 0, nil
	spec.Managed, spec.EnablePDB, spec.Certificates, spec.InheritedMetadata = nil, nil, nil, nil
	spec.InPlaceInstanceManagerUpdates, spec.EnableSuperuserAccess = false, false
	spec.ExternalClusters, spec.Replica = nil, nil
	// These say what is so anyway.
	spec.FixedClusterFields = v1alpha1.FixedClusterFields{}
	spec.UnsupportedClusterFields = v1alpha1.UnsupportedClusterFields{}
	spec.Replication.Heartbeat, spec.MySQL.AdditionalConfigFiles = nil, nil
	// These reach it by what is beside the spec.
	spec.ImageName, spec.Backup = "", nil
	spec.MySQL.Parameters, spec.MySQL.BinlogFormat, spec.MySQL.SemiSync = nil, "", nil
	spec.Replication.GroupReplication = nil
	return sumOf(sorted(struct {
		Cluster, Namespace, Instance, Image string
		ServerID                            uint32
		Archives                            bool
		Config                              config
		Spec                                v1alpha1.ClusterSpec
	}{c.Name, c.Namespace, instance, cmp.Or(o.Image, Image(c, o.DefaultImage)), o.ServerID, c.Spec.Backup.Archives(),
		configOf(c), spec}))
}

// sorted is a value with the fields of its structures in the order of their names.
func sorted(value any) (out any) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		panic("resources: " + err.Error()) // a spec is JSON by its nature
	}
	return out
}

// sumOf is the hash of a value's JSON.
func sumOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic("resources: " + err.Error()) // a spec is JSON by its nature
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// membersOnly is what the members are configured with: what is the operator's alone
// restarts nobody.
func membersOnly(g *v1alpha1.GroupReplicationSpec) *v1alpha1.GroupReplicationSpec {
	if g == nil {
		return nil
	}
	out := *g
	out.RecoverTotalOutage = ""
	out.FixedGroupFields = v1alpha1.FixedGroupFields{}
	return &out
}
