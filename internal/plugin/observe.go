package plugin

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/resources"
)

// observe sees a cluster as the operator does, by the same converters. What may not
// be read stays unknown, and is told in the notes.
func (p *caller) observe(ctx context.Context) (o core.Observation, notes []string, err error) {
	c, err := getCluster(ctx, p.client, p.key)
	if err != nil {
		return o, nil, err
	}
	said := p.ask.all(ctx, c.Status.InstanceNames)
	if err := said.mayAsk("seeing the cluster as the operator does"); err != nil {
		return o, nil, err
	}
	p.askLater(ctx, c, said)
	// What instances say was read after the Cluster. Read again, both are of the same
	// moment but for an instant.
	if c, err = getCluster(ctx, p.client, p.key); err != nil {
		return o, nil, err
	}
	objs, notes := p.objects(ctx, c)
	if o.Cluster, err = observation.Cluster(c, objs); err != nil {
		return o, nil, fmt.Errorf("reading the status of Cluster %s: %w", c.Name, err)
	}
	if o.Cluster.Topology.HasLease() {
		var note string
		if o.Cluster.Lease, note = p.lease(ctx, c); note != "" {
			notes = append(notes, note)
		}
	}
	p.silent = map[string]string{}
	for _, name := range observation.InstanceNames(c, objs) {
		p.silent[name] = said[name].Problem
		o.Instances = append(o.Instances, instanceSeen(c, name, objs, said[name]))
	}
	o.Now = p.now()
	return o, notes, nil
}

// askLater asks the primary once more: what it holds may be held against what
// replicas hold only when it was read later.
func (p *caller) askLater(ctx context.Context, c *v1alpha1.Cluster, said words) {
	holder := holderOf(&c.Status)
	if _, answers := said[holder].Report.Get(); !answers {
		return
	}
	if w := p.ask.one(ctx, holder); w.Report.Known() {
		said[holder] = w
	}
}

// instanceSeen takes each Pod for one of the present spec: which spec the operator
// would build it from only the operator knows.
func instanceSeen(c *v1alpha1.Cluster, name string, objs *observation.Objects, w word) core.Instance {
	var wanted observation.Wanted
	if pod := objs.Pods[name]; pod != nil {
		wanted.Made, wanted.Installer = resources.MadeAs(pod), resources.Installer(pod)
	}
	in := observation.Instance(c, name, objs, wanted)
	in.Report, in.Latest = w.Report, w.Report
	if s := w.server(); s != nil {
		in.LastExecuted = core.Known(s.Executed, w.Report.NotBefore(), w.Report.Received())
	}
	return in
}

// objects reads what there is of a cluster in Kubernetes.
func (p *caller) objects(ctx context.Context, c *v1alpha1.Cluster) (*observation.Objects, []string) {
	objs := &observation.Objects{Read: time.Now()}
	var notes []string
	mine := []client.ListOption{client.InNamespace(c.Namespace), client.MatchingLabels{v1alpha1.LabelCluster: c.Name}}
	var pods corev1.PodList
	var volumes corev1.PersistentVolumeClaimList
	var nodes corev1.NodeList
	var classes storagev1.StorageClassList
	may := func(what string, list client.ObjectList, opts ...client.ListOption) bool {
		err := p.client.List(ctx, list, opts...)
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s could not be read (%v), and are taken for unknown", what, err))
		}
		return err == nil
	}
	if may("Pods", &pods, mine...) {
		objs.SetPods(c, pods.Items)
	}
	// Classes tell why a claim is not bound, and not everybody may read them.
	if may("PersistentVolumeClaims", &volumes, mine...) &&
		(allBound(volumes.Items) || may("StorageClasses", &classes)) {
		objs.Classes = classes.Items
		objs.SetVolumes(c, volumes.Items)
	}
	if may("Nodes", &nodes) {
		objs.Nodes = map[string]*corev1.Node{}
		for i := range nodes.Items {
			objs.Nodes[nodes.Items[i].Name] = &nodes.Items[i]
		}
	}
	objs.ReadWrite = readService(ctx, p.client, c)
	return objs, notes
}

func allBound(claims []corev1.PersistentVolumeClaim) bool {
	return !slices.ContainsFunc(claims, func(c corev1.PersistentVolumeClaim) bool {
		return c.Status.Phase != corev1.ClaimBound
	})
}

// lease is the primary's; who may not read it takes it for held as it should be.
func (p *caller) lease(ctx context.Context, c *v1alpha1.Cluster) (core.Fact[core.Lease], string) {
	read := p.now()
	key := types.NamespacedName{Namespace: c.Namespace, Name: resources.Names(c.Name).Lease()}
	record := &coordination.Lease{}
	err := p.client.Get(ctx, key, record)
	switch {
	case apierrors.IsNotFound(err):
		return core.Known(core.Lease{UnchangedSince: read}, read, read), ""
	case err != nil:
		return core.Known(core.Lease{Holder: holderOf(&c.Status), Epoch: c.Status.PrimaryEpoch, Version: "unread",
				UnchangedSince: read}, read, read),
			fmt.Sprintf("the Lease %s could not be read (%v), and is taken for held by the primary", key.Name, err)
	}
	l := observation.LeaseFacts(record)
	l.UnchangedSince = read
	return core.Known(l, read, read), ""
}

// namesOf are instances by name or number, each once.
func namesOf(c *v1alpha1.Cluster, instances []string) ([]string, error) {
	var out []string
	for _, instance := range instances {
		name, err := instanceNamed(c, instance)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, nil
}
