package operator

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
)

// clearReinit takes one instance out of the wish, and leaves the others.
func (a *actor) clearReinit(ctx context.Context, c *v1alpha1.Cluster, instance string) error {
	left := core.WithoutReinit(observation.ReinitWish(c), instance)
	var value any
	if len(left) > 0 {
		value = observation.ReinitText(left)
	}
	return a.annotate(ctx, c, v1alpha1.AnnotationReinit, value)
}

// bindReinit writes down for which epoch and volume a wish is, and leaves the others as they are.
func (a *actor) bindReinit(ctx context.Context, c *v1alpha1.Cluster, bound core.ReinitRequest) error {
	return a.annotate(ctx, c, v1alpha1.AnnotationReinit,
		observation.ReinitText(core.BoundReinit(observation.ReinitWish(c), bound)))
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
