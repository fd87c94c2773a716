package observation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// IsInstances reports whether an object is the one of an instance of this very Cluster:
// it belongs to the Cluster, and it has the instance's name. Labels are copied by anybody
// who copies a manifest, and tell nothing; owners and annotations are copied too, and then
// the name is another. A claim that was kept is no instance's.
func IsInstances(c *v1alpha1.Cluster, obj metav1.Object) bool {
	return hasItsName(c, obj) && !resources.IsKept(obj)
}

func hasItsName(c *v1alpha1.Cluster, obj metav1.Object) bool {
	_, named := resources.Ordinal(c.Name, obj.GetName())
	return named && resources.Belongs(c, obj) && !isCopy(c, obj)
}

// isCopy reports whether an object is labelled as that of another instance, from whose it was copied. A claim
// of an instance that there is, or was, is none: somebody changed its label, and there are data behind it.
func isCopy(c *v1alpha1.Cluster, obj metav1.Object) bool {
	label, labelled := obj.GetLabels()[v1alpha1.LabelInstance]
	if !labelled || label == obj.GetName() {
		return false
	}
	_, isClaim := obj.(*corev1.PersistentVolumeClaim)
	return !isClaim || !resources.IsKept(obj) && !slices.Contains(c.Status.InstanceNames, obj.GetName())
}

// SetPods keeps the Pods that are the Cluster's instances, and the names of others that may be
// taken for its instances. The Pods are known from then on, also when there are none.
func (o *Objects) SetPods(c *v1alpha1.Cluster, pods []corev1.Pod) {
	o.Pods, o.ForeignPods = map[string]*corev1.Pod{}, nil
	for i := range pods {
		if pod := &pods[i]; IsInstances(c, pod) {
			o.Pods[pod.Name] = pod
		} else if isTold(c, pod) {
			o.ForeignPods = append(o.ForeignPods, pod.Name)
		}
	}
	slices.Sort(o.ForeignPods)
}

// SetVolumes keeps the claims of the Cluster's instances, those with an instance's name that were
// kept, those of a former Cluster, and the names of others that may be taken for its own.
func (o *Objects) SetVolumes(c *v1alpha1.Cluster, claims []corev1.PersistentVolumeClaim) {
	o.Volumes, o.KeptVolumes = map[string]*corev1.PersistentVolumeClaim{}, map[string]*corev1.PersistentVolumeClaim{}
	o.FormerVolumes, o.ForeignVolumes = nil, nil
	for i := range claims {
		if claim := &claims[i]; IsInstances(c, claim) {
			o.Volumes[claim.Name] = claim
		} else if hasItsName(c, claim) {
			o.KeptVolumes[claim.Name] = claim
		} else if of := resources.FormerOwner(c, claim); of != "" && claim.DeletionTimestamp == nil {
			o.FormerVolumes = append(o.FormerVolumes, core.FormerVolume{Instance: claim.Name, UID: string(claim.UID),
				Of: of, Removed: resources.IsKept(claim)})
		} else if isTold(c, claim) {
			o.ForeignVolumes = append(o.ForeignVolumes, claim.Name)
		}
	}
	slices.SortFunc(o.FormerVolumes, func(a, b core.FormerVolume) int {
		return ordinal(c, a.Instance) - ordinal(c, b.Instance)
	})
	slices.Sort(o.ForeignVolumes)
}

// AllBound reports whether every claim has its volume.
func (o *Objects) AllBound() bool {
	for _, claim := range o.Volumes {
		if claim.Status.Phase != corev1.ClaimBound {
			return false
		}
	}
	return true
}

// NodesToWatch are the nodes of all that a decision may rest on.
func NodesToWatch(c *v1alpha1.Cluster, objs *Objects) []string {
	var names []string
	for _, instance := range InstanceNames(c, objs) {
		names = append(names, NodeToWatch(c, instance, objs.Pods[instance]))
	}
	if p := c.Status.Promotion; p != nil {
		names = append(names, p.Node)
	}
	if op := c.Status.Operation; op != nil {
		for _, text := range op.Witnesses {
			names = append(names, core.ParseWitness(text).Node)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// isTold reports whether somebody else's object is worth telling of: it may be taken for an
// instance's by its labels, and nobody is about to delete it. An object that merely names the
// Cluster is nobody's business.
func isTold(c *v1alpha1.Cluster, obj metav1.Object) bool {
	labels := obj.GetLabels()
	if labels[v1alpha1.LabelCluster] != c.Name || obj.GetDeletionTimestamp() != nil {
		return false
	}
	return slices.ContainsFunc(resources.RoutingLabels, func(key string) bool { _, is := labels[key]; return is })
}
