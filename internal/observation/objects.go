package observation

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/resources"
)

// Objects are the Kubernetes objects of one cluster as they were at Read: Pods and
// Volumes by instance, Nodes by name. A map that is nil was not read: nothing is
// known of what would be in it. The foreign ones carry the labels of an instance and
// are not this Cluster's.
type Objects struct {
	ForeignPods, ForeignVolumes []string

	Pods    map[string]*corev1.Pod
	Volumes map[string]*corev1.PersistentVolumeClaim
	// KeptVolumes had an instance that was removed, by its name.
	KeptVolumes map[string]*corev1.PersistentVolumeClaim
	// FormerVolumes outlived Clusters of this name.
	FormerVolumes []core.FormerVolume
	// RefusedGrowths are those of instances' claims that were refused under the circumstances of now, by instance.
	RefusedGrowths map[string]*core.RefusedGrowth

	// Nodes is nil while they cannot be read.
	Nodes     map[string]*corev1.Node
	Classes   []storagev1.StorageClass
	ReadWrite *corev1.Service
	Services  []corev1.Service
	Read      time.Time
	// Unread tells what could not be read, and holds up nothing.
	Unread []core.Problem
}

// NoteUnread notes what could not be read, and what comes of it.
func (o *Objects) NoteUnread(so string, err error) {
	o.Unread = append(o.Unread, core.Problem{Reason: core.ReasonUnreadable, Message: so + ": " + err.Error()})
}

// Cluster is what the user wants and what was decided before. The lease, and what
// hinders the operator itself, are not in it.
func Cluster(c *v1alpha1.Cluster, objs *Objects) (core.Cluster, error) {
	status, err := StatusFrom(&c.Status)
	if err != nil {
		return core.Cluster{}, err
	}
	return core.Cluster{
		Name: c.Name, Generation: c.Generation, Deleting: c.DeletionTimestamp != nil,
		Wanted: int(c.Spec.Instances), Topology: declared.Topology(&c.Spec), Durability: Durability(&c.Spec),
		FirstData:       declared.FirstData(&c.Spec),
		Follows:         declared.Follows(&c.Spec),
		SourceAddress:   declared.SourceAddress(&c.Spec),
		FailoverDelay:   time.Duration(c.Spec.FailoverDelay) * time.Second,
		SwitchoverLimit: declared.SwitchoverLimit(&c.Spec),
		SwitchoverPause: declared.SwitchoverPause(&c.Spec),
		PrimaryLease:    declared.PrimaryLease(&c.Spec),
		Policy:          Policy(&c.Spec), Override: OverrideWish(c), Reinit: ReinitWish(c),
		VolumeSize:    VolumeSize(&c.Spec),
		KeepVolumes:   c.Spec.Storage.WhenScaled != v1alpha1.DeleteVolume,
		KeptVolumes:   slices.Sorted(maps.Keys(objs.KeptVolumes)),
		FormerVolumes: objs.FormerVolumes, AdoptFrom: c.Annotations[v1alpha1.AnnotationAdoptVolumes],
		Group: GroupWish(c), Status: status, ForeignPods: objs.ForeignPods, ForeignVolumes: objs.ForeignVolumes,
		Routed: core.Known(routedTo(objs.ReadWrite), objs.Read, objs.Read), Services: services(c, objs.Services),
	}, nil
}

// services are the Cluster's own that lead to roles.
func services(c *v1alpha1.Cluster, all []corev1.Service) (own []core.Service) {
	for i := range all {
		s := &all[i]
		if !resources.IsRoleService(s) || !metav1.IsControlledBy(s, c) {
			continue
		}
		own = append(own, core.Service{Name: s.Name, UID: string(s.UID), Deleting: s.DeletionTimestamp != nil,
			Wanted: resources.AsksForService(c, s.Name)})
	}
	return own
}

// InstanceNames returns the names of the instances that have, had or should have objects, by
// ordinal. Names that are no instance's of this Cluster are left out.
func InstanceNames(c *v1alpha1.Cluster, objs *Objects) []string {
	names := slices.Concat(c.Status.InstanceNames, slices.Collect(maps.Keys(objs.Pods)),
		slices.Collect(maps.Keys(objs.Volumes)))
	names = slices.DeleteFunc(names, func(name string) bool {
		_, ours := resources.Ordinal(c.Name, name)
		return !ours
	})
	slices.SortFunc(names, func(a, b string) int { return ordinal(c, a) - ordinal(c, b) })
	return slices.Compact(names)
}

// Instance is what the objects tell of one instance; wanted is the Pod that would be
// built for it now.
func Instance(c *v1alpha1.Cluster, name string, objs *Objects, wanted Wanted) core.Instance {
	in := core.Instance{Name: name, Ordinal: ordinal(c, name)}
	pod := objs.Pods[name]
	in.HeldBy = heldBy(pod, objs.Volumes[name])
	if objs.Pods != nil {
		in.Pod = core.Known(PodFacts(pod, wanted), objs.Read, objs.Read)
	}
	if objs.Volumes != nil {
		facts := VolumeFacts(c, objs.Volumes[name], objs.Classes)
		facts.Refused = objs.RefusedGrowths[name]
		if kept := objs.KeptVolumes[name]; kept != nil && !facts.Exists {
			// It is being taken from the instance, of which there is still a Pod.
			facts = core.Volume{Exists: true, UID: string(kept.UID), Deleting: true}
		}
		in.Volume = core.Known(facts, objs.Read, objs.Read)
	}
	if node := NodeToWatch(c, name, pod); node != "" && objs.Nodes != nil {
		in.Node = core.Known(NodeFacts(objs.Nodes[node]), objs.Read, objs.Read)
	}
	in.EndedPods = endedWitnesses(c, name, objs.Nodes)
	return in
}

// endedWitnesses are those Pods whose node is gone or out of service.
func endedWitnesses(c *v1alpha1.Cluster, name string, nodes map[string]*corev1.Node) []string {
	if c.Status.Operation == nil || nodes == nil {
		return nil
	}
	var out []string
	for _, text := range c.Status.Operation.Witnesses {
		w := core.ParseWitness(text)
		if n := NodeFacts(nodes[w.Node]); w.Instance == name && w.Node != "" && (!n.Exists || n.OutOfService) {
			out = append(out, w.PodUID)
		}
	}
	return out
}

// NodeToWatch returns the node of the Pod that may be writable, as it was promoted, and for any
// other instance that of its Pod; "" when there is no Pod (nil), or it has no node yet.
func NodeToWatch(c *v1alpha1.Cluster, name string, pod *corev1.Pod) string {
	var promotion *core.Promotion
	if p := c.Status.Promotion; p != nil {
		promotion = &core.Promotion{Instance: p.Instance, Node: p.Node}
	}
	var node string
	if pod != nil {
		node = pod.Spec.NodeName
	}
	return promotion.NodeToWatch(name, node)
}

// NodeFacts turns a Node into facts; a nil Node is the fact that there is none.
func NodeFacts(n *corev1.Node) core.Node {
	if n == nil {
		return core.Node{}
	}
	facts := core.Node{Exists: true, Draining: n.Spec.Unschedulable}
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			facts.NotReady = condition.Status != corev1.ConditionTrue
		}
	}
	for _, t := range n.Spec.Taints {
		facts.OutOfService = facts.OutOfService || t.Key == corev1.TaintNodeOutOfService
	}
	return facts
}

// LeaseFacts turns the primary's lease into facts, nil being that there is none.
// Since when it has been as it is, only its observer knows.
func LeaseFacts(record *coordination.Lease) core.Lease {
	if record == nil {
		return core.Lease{}
	}
	l := core.Lease{Version: record.ResourceVersion}
	l.Epoch, _ = strconv.ParseInt(record.Annotations[v1alpha1.AnnotationEpoch], 10, 64)
	if record.Spec.HolderIdentity != nil {
		l.Holder = *record.Spec.HolderIdentity
	}
	return l
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

// heldBy names the finalizers that the deletion of an instance waits for: of its Pod or, without
// one, of its claim.
func heldBy(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) string {
	switch {
	case pod != nil && pod.DeletionTimestamp != nil:
		return strings.Join(pod.Finalizers, ", ")
	case pod == nil && claim != nil && claim.DeletionTimestamp != nil:
		return strings.Join(claim.Finalizers, ", ")
	}
	return ""
}

// VolumeFacts turns a claim into facts; a nil claim is the fact that there is none.
func VolumeFacts(c *v1alpha1.Cluster, v *corev1.PersistentVolumeClaim, classes []storagev1.StorageClass) core.Volume {
	if v == nil {
		return core.Volume{}
	}
	facts := core.Volume{Exists: true, UID: string(v.UID), Deleting: v.DeletionTimestamp != nil,
		Bound: v.Status.Phase == corev1.ClaimBound || v.Status.Phase == corev1.ClaimLost, // it had a volume
		Asks:  v.Spec.Resources.Requests.Storage().Value()}
	if facts.Bound || facts.Deleting {
		return facts
	}
	facts.Problem = classProblem(c, v, classes)
	return facts
}

// classProblem is why no volume can be made for a claim.
func classProblem(c *v1alpha1.Cluster, v *corev1.PersistentVolumeClaim,
	classes []storagev1.StorageClass) *core.Problem {
	if has := v.Spec.StorageClassName; has != nil && *has == "" {
		return &core.Problem{Reason: core.ProblemClassNotFound, Message: "the PersistentVolumeClaim " + v.Name +
			" has the empty storageClassName, for which nobody makes a volume: delete it, and it is made again with " +
			"the default class"}
	}
	wanted := resources.StorageClass(c)
	known := slices.ContainsFunc(classes, func(sc storagev1.StorageClass) bool {
		if wanted != nil {
			return sc.Name == *wanted
		}
		return sc.Annotations["storageclass.kubernetes.io/is-default-class"] == "true"
	})
	switch {
	case known:
		return nil
	case wanted != nil:
		return &core.Problem{Reason: core.ProblemClassNotFound, Message: "the StorageClass " + *wanted +
			" does not exist: create it, " +
			"or delete this Cluster and create it with a class that kubectl get storageclass lists"}
	default:
		return &core.Problem{Reason: core.ProblemNoDefaultClass, Message: "spec.storage.storageClass is " +
			"empty and there is no default StorageClass: mark one as default, or name one in a new Cluster"}
	}
}
