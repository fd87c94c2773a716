package operator

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/operator/alive"
)

// cacheOptions keep in memory only what belongs to a Cluster, and of that what is read.
func cacheOptions() (cache.Options, error) {
	ours, err := labels.NewRequirement(v1alpha1.LabelCluster, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	only := labels.NewSelector().Add(*ours)
	read, applied := cache.ByObject{Label: only}, cache.ByObject{Label: only, Transform: whole}
	byObject := map[client.Object]cache.ByObject{
		&corev1.Pod{}: read, &corev1.PersistentVolumeClaim{}: read, &coordination.Lease{}: read, &batchv1.Job{}: read,
		&corev1.Service{}: applied, &corev1.Secret{}: applied, &corev1.ServiceAccount{}: applied,
		&rbacv1.Role{}: applied, &rbacv1.RoleBinding{}: applied, &policyv1.PodDisruptionBudget{}: applied,
	}
	return cache.Options{DefaultTransform: slim, NewInformer: alive.NewInformer, ByObject: byObject}, nil
}

// byCluster is the index of objects by the Cluster that their label names: a look at one
// cluster must not go through the objects of all others in its namespace.
const byCluster = "cluster"

// listed are the kinds that have the index.
var listed = []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &corev1.Service{}}

func labelledCluster(obj client.Object) []string {
	if name := obj.GetLabels()[v1alpha1.LabelCluster]; name != "" {
		return []string{name}
	}
	return nil
}

func indexCaches(ctx context.Context, by client.FieldIndexer) error {
	for _, kind := range listed {
		if err := by.IndexField(ctx, kind, byCluster, labelledCluster); err != nil {
			return err
		}
	}
	return nil
}

// those are the objects of a cluster, as the caches have them.
func those(c *v1alpha1.Cluster) client.ListOption {
	return &client.ListOptions{Namespace: c.Namespace, FieldSelector: fields.OneTermEqualSelector(byCluster, c.Name)}
}

// whole keeps an object as it is: what we apply is held against whose fields are whose.
func whole(obj any) (any, error) { return obj, nil }

// slim leaves out of an object what nobody reads. Such an object is never written as a whole:
// it is patched, or its status is written.
func slim(obj any) (any, error) {
	if o, is := obj.(metav1.Object); is {
		o.SetManagedFields(nil)
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		o.Spec = corev1.PodSpec{NodeName: o.Spec.NodeName, InitContainers: images(o.Spec.InitContainers),
			Containers: images(o.Spec.Containers)}
	case *corev1.Node:
		o.Status = corev1.NodeStatus{Conditions: o.Status.Conditions}
	}
	return obj, nil
}

// images are containers by name and image.
func images(all []corev1.Container) (slim []corev1.Container) {
	for _, c := range all {
		slim = append(slim, corev1.Container{Name: c.Name, Image: c.Image})
	}
	return slim
}
