package resources

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"cnmsql.co/api/v1alpha1"
)

// Standard labels, and their values.
const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelComponent = "app.kubernetes.io/component"
	labelManagedBy = "app.kubernetes.io/managed-by"

	// componentInstance marks what makes up a MySQL instance, as opposed to
	// what else may belong to a cluster (the Pods of its jobs, for example).
	componentInstance = "instance"
	componentCluster  = "cluster"
)

// RoutingLabels are those by which the Services and the disruption budget of a cluster
// select Pods, besides the one that names the cluster.
var RoutingLabels = []string{v1alpha1.LabelInstance, v1alpha1.LabelRole, v1alpha1.LabelRoutable}

// meta is the metadata of an object of the cluster. The operator's own keys win
// over those that the user asked to be inherited.
func meta(c *v1alpha1.Cluster, name, component string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Name:      name,
		Namespace: c.Namespace,
		Labels:    map[string]string{},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c,
			v1alpha1.GroupVersion.WithKind("Cluster"))},
	}
	if in := c.Spec.InheritedMetadata; in != nil {
		maps.Copy(m.Labels, usersOf(texts(in.Labels)))
		m.Annotations = usersOf(in.Annotations)
	}
	maps.Copy(m.Labels, ownLabels(c, component))
	return m
}

// isReserved reports whether a name of a label or an annotation is the operator's, by which it knows
// objects, and Services find Pods. The schema refuses those of a user; an object of before may have them.
func isReserved(key string) bool {
	return strings.HasPrefix(key, "mysql.cnmsql.co/") || strings.HasPrefix(key, "cnmsql.cnmsql.co/")
}

// usersOf is what of a user's labels or annotations is put on objects; nil if there is nothing.
func usersOf(in map[string]string) map[string]string {
	out := maps.Clone(in)
	maps.DeleteFunc(out, func(key, _ string) bool { return isReserved(key) })
	return out
}

// texts are labels or annotations of the spec as Kubernetes has them; nil if there are none.
func texts[Text ~string](in map[string]Text) map[string]string {
	if in == nil {
		return nil
	}
	out := make(map[string]string, len(in))
	for key, value := range in {
		out[key] = string(value)
	}
	return out
}

// ownLabels are those by which the operator, and people, know an object of the cluster.
func ownLabels(c *v1alpha1.Cluster, component string) map[string]string {
	return map[string]string{
		v1alpha1.LabelCluster: c.Name,
		labelName:             "mysql",
		labelInstance:         c.Name,
		labelComponent:        component,
		labelManagedBy:        FieldManager,
	}
}

// instanceMeta is the metadata of an object of one instance.
func instanceMeta(c *v1alpha1.Cluster, name, instance string) metav1.ObjectMeta {
	m := meta(c, name, componentInstance)
	m.Labels[v1alpha1.LabelInstance] = instance
	return m
}

// LackedLabels is what an instance's Pod or claim lacks of the labels by which the operator knows it, as a
// merge patch of its metadata; nil if it has them.
func LackedLabels(c *v1alpha1.Cluster, obj metav1.Object) map[string]any {
	some := map[string]any{}
	for key, value := range map[string]string{v1alpha1.LabelCluster: c.Name, v1alpha1.LabelInstance: obj.GetName()} {
		if obj.GetLabels()[key] != value {
			some[key] = value
		}
	}
	if len(some) == 0 {
		return nil
	}
	return map[string]any{"labels": some}
}

// LackedOfInherited is what of spec.inheritedMetadata an object of the cluster does not carry, as a
// merge patch of its metadata; nil if it carries all. The operator's own labels are left alone.
func LackedOfInherited(c *v1alpha1.Cluster, obj metav1.Object) map[string]any {
	in := c.Spec.InheritedMetadata
	if in == nil {
		return nil
	}
	out := map[string]any{}
	lacked := func(field string, wanted, has map[string]string, isOurs func(key string) bool) {
		some := map[string]any{}
		for key, value := range wanted {
			if is, found := has[key]; !isOurs(key) && (!found || is != value) {
				some[key] = value
			}
		}
		if len(some) > 0 {
			out[field] = some
		}
	}
	own := ownLabels(c, "")
	lacked("labels", texts(in.Labels), obj.GetLabels(), func(key string) bool {
		_, is := own[key]
		return is || isReserved(key)
	})
	lacked("annotations", in.Annotations, obj.GetAnnotations(), isReserved)
	if len(out) == 0 {
		return nil
	}
	return out
}

func annotate(m *metav1.ObjectMeta, key, value string) {
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[key] = value
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

// InstanceLabels select the Pods of all instances of a cluster.
func InstanceLabels(c *v1alpha1.Cluster) map[string]string {
	return map[string]string{v1alpha1.LabelCluster: c.Name, labelComponent: componentInstance}
}

// InstancesSelector selects the Pods of all instances of all clusters.
const InstancesSelector = v1alpha1.LabelCluster + "," + labelComponent + "=" + componentInstance

// InstanceSelector is InstanceLabels as text, for status.labelSelector.
func InstanceSelector(c *v1alpha1.Cluster) string {
	return labels.SelectorFromSet(InstanceLabels(c)).String()
}
