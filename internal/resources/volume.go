package resources

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
)

// ServerID is the server_id of an instance: never 0, never the same for two
// ordinals of one cluster, and not likely the same in two clusters, of which one
// may replicate from the other some day.
func ServerID(cluster types.UID, ordinal int) uint32 {
	sum := sha256.Sum256([]byte(cluster))
	base := uint64(binary.BigEndian.Uint32(sum[:4]))
	return uint32((base+uint64(ordinal))%math.MaxUint32) + 1
}

// VolumeClaim is the claim for an instance's volume. It keeps the server_id, so
// that an instance has the same one as long as it has the same data. It has the Cluster
// as owner only if it is to be deleted with it.
func VolumeClaim(c *v1alpha1.Cluster, instance string, serverID uint32) (*corev1.PersistentVolumeClaim, error) {
	size, err := resource.ParseQuantity(c.Spec.Storage.Size)
	if err != nil {
		return nil, err
	}
	m := instanceMeta(c, instance, instance)
	annotate(&m, v1alpha1.AnnotationServerID, strconv.FormatUint(uint64(serverID), 10))
	annotate(&m, v1alpha1.AnnotationClusterUID, string(c.UID))
	if !VolumesGo(c) {
		m.OwnerReferences = nil
	}
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   typeMeta("v1", "PersistentVolumeClaim"),
		ObjectMeta: m,
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: StorageClass(c),
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: size},
			},
		},
	}, nil
}

// StorageClass is the class that new volumes of a Cluster are to have; nil is the default one.
// To Kubernetes the empty name says that none is to make them.
func StorageClass(c *v1alpha1.Cluster) *string {
	if class := c.Spec.Storage.StorageClass; class != nil && *class != "" {
		return class
	}
	return nil
}

// ServerIDOf is the server_id that a claim keeps; false when it keeps none.
func ServerIDOf(claim *corev1.PersistentVolumeClaim) (uint32, bool) {
	id, err := strconv.ParseUint(claim.Annotations[v1alpha1.AnnotationServerID], 10, 32)
	return uint32(id), err == nil && id != 0
}

// VolumesGo reports whether the claims of a Cluster are to be deleted with it.
func VolumesGo(c *v1alpha1.Cluster) bool { return c.Spec.Storage.WhenDeleted == v1alpha1.DeleteVolume }

// Unfreed are the names of the claims that would be deleted with the Cluster although its spec says by now
// that they stay. Whoever lets a deleted Cluster go waits until there are none: the operator frees them.
func Unfreed(c *v1alpha1.Cluster, claims []corev1.PersistentVolumeClaim) (names []string) {
	for i := range claims {
		if claim := &claims[i]; !VolumesGo(c) && claim.DeletionTimestamp == nil && metav1.IsControlledBy(claim, c) {
			names = append(names, claim.Name)
		}
	}
	return names
}

// Belongs reports whether an object is this very Cluster's: the Cluster controls it, or,
// of a volume claim, which may outlive the Cluster, nobody does and it names the
// Cluster's UID.
func Belongs(c *v1alpha1.Cluster, obj metav1.Object) bool {
	if claim, is := obj.(*corev1.PersistentVolumeClaim); is && metav1.GetControllerOfNoCopy(claim) == nil {
		return c.UID != "" && claim.Annotations[v1alpha1.AnnotationClusterUID] == string(c.UID)
	}
	return metav1.IsControlledBy(obj, c)
}

// FormerOwner is the UID of the deleted Cluster of this name to one of whose instances a
// claim belonged; "" for any other claim.
func FormerOwner(c *v1alpha1.Cluster, claim *corev1.PersistentVolumeClaim) string {
	of := claim.Annotations[v1alpha1.AnnotationClusterUID]
	_, named := Ordinal(c.Name, claim.Name)
	if !named || claim.Labels[v1alpha1.LabelCluster] != c.Name || of == string(c.UID) ||
		metav1.GetControllerOfNoCopy(claim) != nil {
		return ""
	}
	return of
}

// IsKept reports whether a claim outlived its instance: no instance uses it.
func IsKept(obj metav1.Object) bool {
	_, kept := obj.GetAnnotations()[v1alpha1.AnnotationKept]
	return kept
}

// Owned changes the metadata of a claim that belongs to a Cluster to what decides
// whether the claim is deleted with it, and reports whether that was a change. Claims of
// an operator that let none outlive its Cluster are given the UID.
func Owned(c *v1alpha1.Cluster, claim *corev1.PersistentVolumeClaim) bool {
	goes, owned := VolumesGo(c), metav1.IsControlledBy(claim, c)
	if goes == owned && claim.Annotations[v1alpha1.AnnotationClusterUID] == string(c.UID) {
		return false
	}
	annotate(&claim.ObjectMeta, v1alpha1.AnnotationClusterUID, string(c.UID))
	switch {
	case goes && !owned:
		claim.OwnerReferences = append(claim.OwnerReferences, *metav1.NewControllerRef(c,
			v1alpha1.GroupVersion.WithKind("Cluster")))
	case !goes && owned:
		claim.OwnerReferences = slices.DeleteFunc(claim.OwnerReferences, func(r metav1.OwnerReference) bool {
			return r.UID == c.UID
		})
	}
	return true
}
