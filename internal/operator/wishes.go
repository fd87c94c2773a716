package operator

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// reinitWish reads which instances a human wants made anew.
func reinitWish(c *v1alpha1.Cluster) []string {
	var names []string
	for name := range strings.SplitSeq(c.Annotations[v1alpha1.AnnotationReinit], ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// overrideWish reads a human's "instance@epoch"; one that cannot be read is of no epoch.
func overrideWish(c *v1alpha1.Cluster) *core.Override {
	text, wished := c.Annotations[v1alpha1.AnnotationAcceptLoss]
	if !wished {
		return nil
	}
	name, at, _ := strings.Cut(text, "@")
	epoch, _ := strconv.ParseInt(at, 10, 64)
	return &core.Override{To: name, Epoch: epoch}
}

func policy(spec *v1alpha1.ClusterSpec) core.FailoverPolicy {
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

// clearReinit takes one instance out of the wish, and leaves the others.
func (a *actor) clearReinit(ctx context.Context, c *v1alpha1.Cluster, instance string) error {
	left := slices.DeleteFunc(reinitWish(c), func(name string) bool { return name == instance })
	var value any
	if len(left) > 0 {
		value = strings.Join(left, ",")
	}
	return a.annotate(ctx, c, v1alpha1.AnnotationReinit, value)
}

// annotate sets an annotation of the Cluster, nil removes it, on the condition
// that the Cluster is still the one that was observed.
func (a *actor) annotate(ctx context.Context, c *v1alpha1.Cluster, key string, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{key: value}, "resourceVersion": c.ResourceVersion}})
	if err != nil {
		return err
	}
	target := &v1alpha1.Cluster{}
	target.Namespace, target.Name = c.Namespace, c.Name
	if err := a.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return client.IgnoreNotFound(err)
	}
	*c = *target
	return nil
}
