package observation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

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
	d.Mode = declared.DataDurability(spec)
	if spec.MinSyncReplicas != nil {
		d.Min = int(*spec.MinSyncReplicas)
	}
	if spec.MaxSyncReplicas != nil {
		d.Max = int(*spec.MaxSyncReplicas)
	}
	return d
}

// VolumeSize returns how large the user wants volumes to be; zero when that cannot be read.
func VolumeSize(spec *v1alpha1.ClusterSpec) core.Size {
	size, err := resource.ParseQuantity(spec.Storage.Size)
	if err != nil {
		return core.Size{}
	}
	return core.Size{Bytes: size.Value(), Text: spec.Storage.Size}
}

// ReinitWish returns a human's requests to recreate data, one an instance, in the order of the
// annotation; nil when there are none.
func ReinitWish(c *v1alpha1.Cluster) []core.ReinitRequest {
	var all []core.ReinitRequest
	for text := range strings.SplitSeq(c.Annotations[v1alpha1.AnnotationReinit], ",") {
		if r := reinitRequest(strings.TrimSpace(text)); r.Instance != "" &&
			!slices.Contains(core.ReinitNames(all), r.Instance) {
			all = append(all, r)
		}
	}
	return all
}

// Marks at the end of a request: its human was told that the instance holds what the others lack; and
// nobody could ask the instance.
const (
	divergedMark = "diverged"
	unheardMark  = "unheard"
)

// reinitRequest reads "instance", or "instance@epoch/volume", with "/diverged" and "/unheard" behind
// it. One that is bound to what cannot be read is of the epoch -1, which is no epoch.
func reinitRequest(text string) core.ReinitRequest {
	name, to, isBound := strings.Cut(text, "@")
	r := core.ReinitRequest{Instance: name}
	if !isBound {
		return r
	}
	parts := strings.Split(to, "/")
	epoch, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || len(parts) < 2 || parts[1] == "" {
		r.Epoch = -1
		return r
	}
	r.Epoch, r.Volume = epoch, parts[1]
	for _, mark := range parts[2:] {
		switch mark {
		case divergedMark:
			r.Diverged = true
		case unheardMark:
			r.Unheard = true
		default:
			return core.ReinitRequest{Instance: name, Epoch: -1}
		}
	}
	return r
}

// ReinitText is the value of the annotation for requests.
func ReinitText(all []core.ReinitRequest) string {
	var out []string
	for _, r := range all {
		text := r.Instance
		switch {
		case r.IsBound():
			text = fmt.Sprintf("%s@%d/%s", r.Instance, r.Epoch, r.Volume)
		case r.Epoch < 0:
			text += "@"
		}
		if r.Diverged {
			text += "/" + divergedMark
		}
		if r.Unheard {
			text += "/" + unheardMark
		}
		out = append(out, text)
	}
	return strings.Join(out, ",")
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
