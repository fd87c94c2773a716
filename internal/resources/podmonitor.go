package resources

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cnmsql.co/api/v1alpha1"
)

// PodMonitorKind is the Prometheus Operator's: a Kubernetes without that does not know it.
var PodMonitorKind = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"}

// PodMonitor has Prometheus ask each instance for its metrics, and keep with them which Cluster and which
// instance they are of. It is nil when the user wants none.
func PodMonitor(c *v1alpha1.Cluster) *unstructured.Unstructured {
	if m := c.Spec.Monitoring; m == nil || m.EnablePodMonitor == nil || !*m.EnablePodMonitor {
		return nil
	}
	selected := map[string]any{}
	for name, value := range InstanceLabels(c) {
		selected[name] = value
	}
	out := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"selector":            map[string]any{"matchLabels": selected},
		"podTargetLabels":     []any{v1alpha1.LabelCluster, v1alpha1.LabelInstance, v1alpha1.LabelRole},
		"podMetricsEndpoints": []any{map[string]any{"port": metricsPort}},
	}}}
	out.SetGroupVersionKind(PodMonitorKind)
	is := meta(c, c.Name, componentCluster)
	out.SetNamespace(is.Namespace)
	out.SetName(is.Name)
	out.SetLabels(is.Labels)
	out.SetAnnotations(is.Annotations)
	out.SetOwnerReferences(is.OwnerReferences)
	return out
}
