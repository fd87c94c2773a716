package observation

import (
	"slices"
	"strconv"
	"strings"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/declared"
)

// Durability reads the wish out of a spec.
func Durability(spec *v1alpha1.ClusterSpec) core.Durability {
	d := core.Durability{Mode: core.DurabilityAsync}
	if !declared.Topology(spec).UsesSemiSync() {
		return d
	}
	if semi := declared.SemiSynchronous(spec); semi != nil {
		d.Mode = core.DurabilityMode(semi.DataDurability)
	}
	if spec.MinSyncReplicas != nil {
		d.Min = int(*spec.MinSyncReplicas)
	}
	if spec.MaxSyncReplicas != nil {
		d.Max = int(*spec.MaxSyncReplicas)
	}
	return d
}

// ReinitWish returns the instances that a human wants recreated, each once, in the order of the
// annotation; nil when there is no wish.
func ReinitWish(c *v1alpha1.Cluster) []string {
	var names []string
	for name := range strings.SplitSeq(c.Annotations[v1alpha1.AnnotationReinit], ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// OverrideWish reads a human's "instance@epoch"; nil when there is no wish. An epoch that cannot
// be read is -1, which is no epoch.
func OverrideWish(c *v1alpha1.Cluster) *core.Override {
	text, wished := c.Annotations[v1alpha1.AnnotationAcceptLoss]
	if !wished {
		return nil
	}
	name, at, _ := strings.Cut(text, "@")
	epoch, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		epoch = -1
	}
	return &core.Override{To: name, Epoch: epoch}
}

// Policy reads the bounds that the user set to failovers. What was not set is 0 or nil, and bounds
// nothing.
func Policy(spec *v1alpha1.ClusterSpec) core.FailoverPolicy {
	p := spec.FailoverPolicy
	if p == nil {
		return core.FailoverPolicy{}
	}
	out := core.FailoverPolicy{Preferred: p.PreferredPrimary}
	if n := p.MaxTransactionsBehind; n != nil {
		most := uint64(*n)
		out.MaxTransactionsBehind = &most
	}
	if d := p.MaxReplicationLag; d != nil {
		out.MaxReplicationLag = d.Duration
	}
	if d := p.MinTimeBetweenFailovers; d != nil {
		out.MinTimeBetweenFailover = d.Duration
	}
	if d := p.PrimaryStabilityWindow; d != nil {
		out.StabilityWindow = d.Duration
	}
	return out
}
