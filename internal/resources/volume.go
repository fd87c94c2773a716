package resources

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
// that an instance has the same one as long as it has the same data.
func VolumeClaim(c *v1alpha1.Cluster, instance string, serverID uint32) (*corev1.PersistentVolumeClaim, error) {
	size, err := resource.ParseQuantity(c.Spec.Storage.Size)
	if err != nil {
		return nil, err
	}
	m := instanceMeta(c, instance, instance)
	annotate(&m, v1alpha1.AnnotationServerID, strconv.FormatUint(uint64(serverID), 10))
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   typeMeta("v1", "PersistentVolumeClaim"),
		ObjectMeta: m,
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: c.Spec.Storage.StorageClass,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: size},
			},
		},
	}, nil
}

// ServerIDOf is the server_id that a claim keeps; false when it keeps none.
func ServerIDOf(claim *corev1.PersistentVolumeClaim) (uint32, bool) {
	id, err := strconv.ParseUint(claim.Annotations[v1alpha1.AnnotationServerID], 10, 32)
	return uint32(id), err == nil && id != 0
}
