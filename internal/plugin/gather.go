package plugin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/resources"
)

// getCluster reads a Cluster; its errors tell what to do.
func getCluster(ctx context.Context, c client.Reader, key types.NamespacedName) (*v1alpha1.Cluster, error) {
	cluster := &v1alpha1.Cluster{}
	err := c.Get(ctx, key, cluster)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no Cluster %s in namespace %s; list all of them: kubectl cnmsql status -A",
			key.Name, key.Namespace)
	case err != nil:
		return nil, fmt.Errorf("reading Cluster %s of namespace %s: %w", key.Name, key.Namespace, explain(err))
	}
	return cluster, nil
}

// explain adds what to do to errors that say too little by themselves.
func explain(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("this Kubernetes does not know Clusters of MySQL; install the operator first, or choose "+
			"another --context (%w)", err)
	}
	return err
}

// gather collects the facts of one cluster. Only the Cluster must be readable;
// what else is not, is left unknown.
func gather(ctx context.Context, s *session, name string) (Facts, error) {
	key := types.NamespacedName{Namespace: s.namespace, Name: name}
	c, err := getCluster(ctx, s.client, key)
	if err != nil {
		return Facts{}, err
	}
	f := Facts{Cluster: c}
	f.Pods = readPods(ctx, s.client, c)
	askAll(ctx, s.askManager, &f)
	// What instances say was read after the Cluster. In between the primary may
	// have changed; read again, both are of the same moment but for an instant.
	if again, err := getCluster(ctx, s.client, key); err == nil {
		f.Cluster = again
	}
	f.ReadWrite = readService(ctx, s.client, f.Cluster)
	if f.Backups, err = backupsOf(ctx, s.client, c.Namespace, c.Name); err != nil {
		f.BackupsProblem = err.Error()
	}
	f.Now = time.Now()
	return f, nil
}

func readPods(ctx context.Context, c client.Reader, cluster *v1alpha1.Cluster) map[string]*corev1.Pod {
	list := &corev1.PodList{}
	if err := c.List(ctx, list, client.InNamespace(cluster.Namespace),
		client.MatchingLabels(resources.InstanceLabels(cluster))); err != nil {
		return nil
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		if pod := &list.Items[i]; observation.IsInstances(cluster, pod) {
			pods[pod.Name] = pod
		}
	}
	return pods
}

// podsByCluster are those of the instances of all clusters in a namespace, or everywhere, and why they could
// not be read. A cluster without Pods has an empty map; one whose Pods are not known has none.
func podsByCluster(ctx context.Context, c client.Reader, clusters []v1alpha1.Cluster, namespace string) (
	all map[types.NamespacedName]map[string]*corev1.Pod, unread error) {
	selector, err := labels.Parse(resources.InstancesSelector)
	if err != nil {
		return nil, err
	}
	list := &corev1.PodList{}
	err = c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, err
	}
	labelled := map[types.NamespacedName][]*corev1.Pod{}
	for i := range list.Items {
		pod := &list.Items[i]
		key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelCluster]}
		labelled[key] = append(labelled[key], pod)
	}
	all = map[types.NamespacedName]map[string]*corev1.Pod{}
	for i := range clusters {
		key := client.ObjectKeyFromObject(&clusters[i])
		all[key] = map[string]*corev1.Pod{}
		for _, pod := range labelled[key] {
			if observation.IsInstances(&clusters[i], pod) {
				all[key][pod.Name] = pod
			}
		}
	}
	return all, nil
}

func readService(ctx context.Context, c client.Reader, cluster *v1alpha1.Cluster) *corev1.Service {
	service := &corev1.Service{}
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: resources.Names(cluster.Name).ReadWrite()}
	if err := c.Get(ctx, key, service); err != nil {
		return nil
	}
	return service
}
