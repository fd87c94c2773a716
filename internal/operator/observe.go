package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// observer gathers an Observation from the caches and the streams. It asks no
// server: what the caches hold is what Kubernetes last said. Only confirm does.
type observer struct {
	client  client.Reader
	live    client.Reader
	streams *Streams
	ended   *endedPods
	leases  *leaseClock
	podHash func(ctx context.Context, c *v1alpha1.Cluster, instance string, ordinal int) string
}

// objects are the Kubernetes objects of one cluster, by instance.
type objects struct {
	pods    map[string]*corev1.Pod
	volumes map[string]*corev1.PersistentVolumeClaim
	nodes   map[string]*corev1.Node
	classes []storagev1.StorageClass
	rw      *corev1.Service
	read    time.Time
}

func (ob *observer) observe(ctx context.Context, c *v1alpha1.Cluster, problem *core.Problem) (core.Observation, error) {
	objs, err := ob.read(ctx, c)
	if err != nil {
		return core.Observation{}, err
	}
	status, err := statusFrom(&c.Status)
	if err != nil {
		return core.Observation{}, err
	}
	o := core.Observation{Cluster: core.Cluster{
		Name: c.Name, Generation: c.Generation, Deleting: c.DeletionTimestamp != nil, Problem: problem,
		Wanted: int(c.Spec.Instances), Durability: durability(&c.Spec),
		FailoverDelay:   time.Duration(c.Spec.FailoverDelay) * time.Second,
		SwitchoverLimit: time.Duration(c.Spec.MaxSwitchoverDelay) * time.Second,
		Status:          status,
		PrimaryLease:    c.Spec.EnablePrimaryLease == nil || *c.Spec.EnablePrimaryLease,
		Policy:          policy(&c.Spec), Override: overrideWish(c), Reinit: reinitWish(c),
		Routed: core.Known(routedTo(objs.rw), objs.read, objs.read),
	}}
	if o.Cluster.Lease, err = ob.lease(ctx, ob.client, c); err != nil {
		return core.Observation{}, err
	}
	for _, name := range instanceNames(c, objs) {
		o.Instances = append(o.Instances, ob.instance(ctx, c, name, objs))
	}
	o.Now = time.Now()
	return o, nil
}

func (ob *observer) read(ctx context.Context, c *v1alpha1.Cluster) (*objects, error) {
	objs := &objects{pods: map[string]*corev1.Pod{}, volumes: map[string]*corev1.PersistentVolumeClaim{},
		nodes: map[string]*corev1.Node{}, read: time.Now()}
	mine := []client.ListOption{client.InNamespace(c.Namespace), client.MatchingLabels{v1alpha1.LabelCluster: c.Name}}
	var pods corev1.PodList
	var volumes corev1.PersistentVolumeClaimList
	var nodes corev1.NodeList
	var classes storagev1.StorageClassList
	for _, err := range []error{ob.client.List(ctx, &pods, mine...), ob.client.List(ctx, &volumes, mine...),
		ob.client.List(ctx, &nodes), ob.client.List(ctx, &classes)} {
		if err != nil {
			return nil, err
		}
	}
	for i := range pods.Items {
		objs.pods[pods.Items[i].Labels[v1alpha1.LabelInstance]] = &pods.Items[i]
	}
	for i := range volumes.Items {
		objs.volumes[volumes.Items[i].Labels[v1alpha1.LabelInstance]] = &volumes.Items[i]
	}
	for i := range nodes.Items {
		objs.nodes[nodes.Items[i].Name] = &nodes.Items[i]
	}
	objs.classes = classes.Items
	var rw corev1.Service
	err := ob.client.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: resources.Names(c.Name).ReadWrite()}, &rw)
	if err == nil {
		objs.rw = &rw
	}
	return objs, client.IgnoreNotFound(err)
}

// instanceNames are those that have, had or should have objects, by ordinal.
func instanceNames(c *v1alpha1.Cluster, objs *objects) []string {
	seen := map[string]bool{}
	for _, name := range c.Status.InstanceNames {
		seen[name] = true
	}
	for name := range objs.pods {
		seen[name] = true
	}
	for name := range objs.volumes {
		seen[name] = true
	}
	var names []string
	for name := range seen {
		if _, ok := resources.Ordinal(c.Name, name); ok {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return ordinal(c, a) - ordinal(c, b) })
	return names
}

func (ob *observer) instance(ctx context.Context, c *v1alpha1.Cluster, name string, objs *objects) core.Instance {
	in := core.Instance{Name: name, Ordinal: ordinal(c, name)}
	pod := objs.pods[name]
	in.Pod = core.Known(podFacts(pod, ob.podHash(ctx, c, name, in.Ordinal)), objs.read, objs.read)
	in.Volume = core.Known(volumeFacts(c, objs.volumes[name], objs.classes), objs.read, objs.read)
	if node := nodeToWatch(c, name, pod); node != "" {
		in.Node = core.Known(nodeFacts(objs.nodes[node]), objs.read, objs.read)
	}
	in.EndedPods = ob.ended.of(c.Namespace, name)
	w := ob.streams.Heard(c.Namespace, name)
	in.Report, in.Earlier, in.LastWord, in.LastExecuted = w.report, w.earlier, w.last, w.executed
	return in
}

// confirm reads past the caches what a proof by Kubernetes' word rests on: the Pod
// of the holder of the promotion, its node, and the lease. A cache may be behind, and what is
// absent from it is not surely gone.
func (ob *observer) confirm(ctx context.Context, c *v1alpha1.Cluster, o *core.Observation) error {
	holder := ""
	if p := c.Status.Promotion; p != nil {
		holder = p.Instance
	}
	i := slices.IndexFunc(o.Instances, func(in core.Instance) bool { return in.Name == holder })
	if i < 0 {
		return nil
	}
	in, read := &o.Instances[i], time.Now()
	lease, err := ob.lease(ctx, ob.live, c)
	if err != nil {
		return err
	}
	o.Cluster.Lease = lease
	pod, err := find(ctx, ob.live, &corev1.Pod{}, types.NamespacedName{Namespace: c.Namespace, Name: holder})
	if err != nil {
		return fmt.Errorf("confirm that the Pod %s has ended: %w", holder, err)
	}
	in.Pod = core.Known(podFacts(pod, ob.podHash(ctx, c, holder, in.Ordinal)), read, read)
	if name := nodeToWatch(c, holder, pod); name != "" {
		node, err := find(ctx, ob.live, &corev1.Node{}, types.NamespacedName{Name: name})
		if err != nil {
			return fmt.Errorf("confirm that the node %s is gone: %w", name, err)
		}
		in.Node = core.Known(nodeFacts(node), read, read)
	}
	o.Now = time.Now()
	return nil
}

// find reads an object; nil when there is none.
func find[T client.Object](ctx context.Context, from client.Reader, into T, key types.NamespacedName) (T, error) {
	var none T
	err := from.Get(ctx, key, into)
	if err != nil {
		return none, client.IgnoreNotFound(err)
	}
	return into, nil
}

// nodeToWatch is the node of the Pod that may be writable; for any other
// instance that of its Pod.
func nodeToWatch(c *v1alpha1.Cluster, name string, pod *corev1.Pod) string {
	if p := c.Status.Promotion; p != nil && p.Instance == name && p.Node != "" {
		return p.Node
	}
	if pod != nil {
		return pod.Spec.NodeName
	}
	return ""
}

func nodeFacts(n *corev1.Node) core.Node {
	if n == nil {
		return core.Node{}
	}
	facts := core.Node{Exists: true, Draining: n.Spec.Unschedulable}
	for _, t := range n.Spec.Taints {
		facts.OutOfService = facts.OutOfService || t.Key == corev1.TaintNodeOutOfService
	}
	return facts
}

func routedTo(rw *corev1.Service) string {
	if rw == nil {
		return ""
	}
	return resources.RoutedTo(rw)
}

func ordinal(c *v1alpha1.Cluster, instance string) int {
	n, _ := resources.Ordinal(c.Name, instance)
	return n
}

func volumeFacts(c *v1alpha1.Cluster, v *corev1.PersistentVolumeClaim, classes []storagev1.StorageClass) core.Volume {
	if v == nil {
		return core.Volume{}
	}
	facts := core.Volume{Exists: true, Deleting: v.DeletionTimestamp != nil, Bound: v.Status.Phase == corev1.ClaimBound}
	if facts.Bound || facts.Deleting {
		return facts
	}
	wanted := c.Spec.Storage.StorageClass
	known := slices.ContainsFunc(classes, func(sc storagev1.StorageClass) bool {
		if wanted != nil {
			return sc.Name == *wanted
		}
		return sc.Annotations["storageclass.kubernetes.io/is-default-class"] == "true"
	})
	switch {
	case known:
	case wanted != nil:
		facts.Problem = &core.Problem{Reason: "StorageClassNotFound", Message: "the StorageClass " + *wanted +
			" does not exist: create it, or delete this Cluster and create it with a class that kubectl get storageclass lists"}
	default:
		facts.Problem = &core.Problem{Reason: "NoDefaultStorageClass", Message: "spec.storage.storageClass is empty and there is no default StorageClass: mark one as default, or name one in a new Cluster"}
	}
	return facts
}
