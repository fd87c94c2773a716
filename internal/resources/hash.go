package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/api/v1alpha1"
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
	type config struct {
		Parameters   map[string]string
		BinlogFormat string
		SemiSync     *v1alpha1.SemiSyncSpec
		Group        *v1alpha1.GroupReplicationSpec `json:",omitempty"`
		BinlogExpire *int64                         `json:",omitempty"`
		BinlogSize   *int32                         `json:",omitempty"`
	}
	semiSync := c.Spec.MySQL.SemiSync
	if semiSync != nil && !semiSync.Enabled {
		semiSync = nil
	}
	var group *v1alpha1.GroupReplicationSpec
	if c.Spec.Replication.Mode == v1alpha1.ReplicationGroup {
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
	text, err := json.Marshal(struct {
		Pod    corev1.PodSpec
		Config config
	}{spec, config{
		Parameters:   parameters,
		BinlogFormat: c.Spec.MySQL.BinlogFormat,
		SemiSync:     semiSync,
		Group:        group,
		BinlogExpire: archiving.BinlogExpireSeconds,
		BinlogSize:   archiving.MaxBinlogSizeMB,
	}})
	if err != nil {
		panic("resources: " + err.Error()) // a PodSpec is JSON by its nature
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
