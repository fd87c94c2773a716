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
	"cnmsql.co/internal/apiconn"
	"cnmsql.co/internal/backups"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/resources"
)

// observer gathers an Observation from the caches and the streams. It asks no
// server: what the caches hold is what Kubernetes last said. Only confirm does.
type observer struct {
	client  client.Reader
	live    client.Reader
	streams *Streams
	ended   *endedPods
	unmade  *unmadePods
	leases  *leaseClock
	growths *refusedGrowths
	// wanted is what the Pod of an instance should be like, and binary what its manager
	// should be.
	wanted func(ctx context.Context, c *v1alpha1.Cluster, instance string, ordinal int) observation.Wanted
	binary func() core.Binary
}

func (ob *observer) observe(ctx context.Context, c *v1alpha1.Cluster, problem *core.Problem) (core.Observation, error) {
	objs, err := ob.read(ctx, c)
	if err != nil {
		return core.Observation{}, err
	}
	var o core.Observation
	if o.Cluster, err = observation.Cluster(c, objs); err != nil {
		return o, err
	}
	o.Cluster.Problem, o.Cluster.Asides = problem, objs.Unread
	if c.Spec.InPlaceInstanceManagerUpdates {
		o.Cluster.Manager = ob.binary()
	}
	if o.Cluster.Lease, err = ob.lease(ctx, ob.client, c); err != nil {
		return o, err
	}
	for _, name := range observation.InstanceNames(c, objs) {
		o.Instances = append(o.Instances, ob.instance(ctx, c, name, objs))
	}
	if err := ob.backups(ctx, c, &o); err != nil {
		return o, err
	}
	o.Now = time.Now()
	return o, nil
}

// backups tells from whom backups are taken. It matters to whoever waits for a donor, and
// is looked for only then. While a Backup cannot be read, one may be taken from each instance: nobody
// copies data, and all else goes on.
func (ob *observer) backups(ctx context.Context, c *v1alpha1.Cluster, o *core.Observation) error {
	waits := func(in core.Instance) bool {
		r, known := in.Report.Get()
		return known && r.State == core.AwaitingClone
	}
	if !slices.ContainsFunc(o.Instances, waits) {
		return nil
	}
	var all v1alpha1.BackupList
	err := ob.client.List(ctx, &all, client.InNamespace(c.Namespace))
	if unread := apiconn.AsUnread(err); unread != nil {
		for i := range o.Instances {
			o.Instances[i].BackedUp = true
		}
		o.Cluster.Asides = append(o.Cluster.Asides, core.Problem{Reason: core.ReasonUnreadable, Message: "no " +
			"instance copies data until this is corrected, because one may be being backed up: " + unread.Error()})
		return nil
	}
	if err != nil {
		return err
	}
	for i := range all.Items {
		b := &all.Items[i]
		if b.Spec.Cluster.Name != c.Name {
			continue
		}
		reads, err := backups.Reads(ctx, ob.client, b)
		if err != nil {
			return err
		}
		if !reads {
			continue
		}
		if n := slices.IndexFunc(o.Instances, func(in core.Instance) bool {
			return in.Name == b.Status.InstanceName
		}); n >= 0 {
			o.Instances[n].BackedUp = true
		}
	}
	return nil
}

func (ob *observer) read(ctx context.Context, c *v1alpha1.Cluster) (*observation.Objects, error) {
	objs := &observation.Objects{Nodes: map[string]*corev1.Node{}, Read: time.Now()}
	var pods corev1.PodList
	var volumes corev1.PersistentVolumeClaimList
	for _, err := range []error{ob.client.List(ctx, &pods, those(c)), ob.client.List(ctx, &volumes, those(c))} {
		if err != nil {
			return nil, err
		}
	}
	objs.SetPods(c, pods.Items)
	if err := ob.findUnlabelled(ctx, c, objs.Pods, &volumes); err != nil {
		return nil, err
	}
	objs.SetVolumes(c, volumes.Items)
	ob.readNodes(ctx, objs, observation.NodesToWatch(c, objs))
	ob.readClasses(ctx, objs)
	ob.readRefused(ctx, c, objs)
	ob.readServices(ctx, c, objs)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var rw corev1.Service
	err := ob.client.Get(ctx, types.NamespacedName{Namespace: c.Namespace,
		Name: resources.Names(c.Name).ReadWrite()}, &rw)
	if err == nil {
		objs.ReadWrite = &rw
	}
	return objs, client.IgnoreNotFound(err)
}

// findUnlabelled adds the claims of Pods that the caches do not have: whoever took the label off a
// claim has not deleted it, and its Pod must not be taken for one that lost its data.
func (ob *observer) findUnlabelled(ctx context.Context, c *v1alpha1.Cluster, pods map[string]*corev1.Pod,
	to *corev1.PersistentVolumeClaimList) error {
	for name := range pods {
		if slices.ContainsFunc(to.Items, func(v corev1.PersistentVolumeClaim) bool { return v.Name == name }) {
			continue
		}
		key := types.NamespacedName{Namespace: c.Namespace, Name: name}
		claim, err := find(ctx, ob.live, &corev1.PersistentVolumeClaim{}, key)
		if err != nil {
			return err
		}
		if claim != nil && resources.Belongs(c, claim) {
			to.Items = append(to.Items, *claim)
		}
	}
	return nil
}

// readNodes reads those of the cluster, and not all that a large Kubernetes has. While one cannot be read, none is
// known: most of what is to be done needs no word of a node.
func (ob *observer) readNodes(ctx context.Context, objs *observation.Objects, names []string) {
	for _, name := range names {
		node, err := find(ctx, ob.client, &corev1.Node{}, types.NamespacedName{Name: name})
		if err != nil {
			objs.Nodes = nil
			objs.NoteUnread("no Node is known, so that neither a node that is gone nor one that is being drained is "+
				"told, until the operator may read them again", err)
			return
		}
		if node != nil {
			objs.Nodes[name] = node
		}
	}
}

// readClasses reads the StorageClasses, unless every claim is bound. They tell why a claim is not
// bound, and nothing else needs them.
func (ob *observer) readClasses(ctx context.Context, objs *observation.Objects) {
	if objs.AllBound() {
		return
	}
	var classes storagev1.StorageClassList
	if err := ob.client.List(ctx, &classes); err != nil {
		objs.NoteUnread("why a claim is not bound is not told while StorageClasses cannot be read", err)
	}
	objs.Classes = classes.Items
}

// readServices reads the Cluster's Services. What is not seen is not deleted.
func (ob *observer) readServices(ctx context.Context, c *v1alpha1.Cluster, objs *observation.Objects) {
	var all corev1.ServiceList
	if err := ob.client.List(ctx, &all, those(c)); err != nil {
		objs.NoteUnread("a Service for which the spec does not ask any more stays while Services cannot be read", err)
	}
	objs.Services = all.Items
}

func (ob *observer) instance(ctx context.Context, c *v1alpha1.Cluster, name string,
	objs *observation.Objects) core.Instance {
	n, _ := resources.Ordinal(c.Name, name)
	in := observation.Instance(c, name, objs, ob.wanted(ctx, c, name, n))
	in.EndedPods, in.NotMade = append(in.EndedPods, ob.ended.of(c, name)...), ob.unmade.of(c, name)
	w := ob.streams.Heard(c.Namespace, name)
	w.Put(&in)
	in.Successor, in.Unheard = w.successor, w.unheard
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
	if pod != nil && !observation.IsInstances(c, pod) {
		pod = nil
	}
	in.Pod = core.Known(observation.PodFacts(pod, ob.wanted(ctx, c, holder, in.Ordinal)), read, read)
	if name := observation.NodeToWatch(c, holder, pod); name != "" {
		node, err := find(ctx, ob.live, &corev1.Node{}, types.NamespacedName{Name: name})
		if err != nil {
			return fmt.Errorf("confirm that the node %s is gone: %w", name, err)
		}
		in.Node = core.Known(observation.NodeFacts(node), read, read)
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
