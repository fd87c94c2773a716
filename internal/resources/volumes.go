package resources

import (
	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
)

// Names of a Pod's volumes.
const (
	volumeData        = "data"
	volumeBin         = "bin"
	volumeRun         = "run"
	volumeTmp         = "tmp"
	volumeTLS         = "tls"
	volumeRoot        = "root"
	volumeReplication = "replication"
	volumeControl     = "control"
	volumeApp         = "app"
	volumeArchive     = "archive"
)

func volumes(c *v1alpha1.Cluster, instance string) []corev1.Volume {
	names := Names(c.Name)
	out := []corev1.Volume{
		{Name: volumeData, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: instance},
		}},
		emptyVolume(volumeBin),
		emptyVolume(volumeRun),
		emptyVolume(volumeTmp),
		secretVolume(volumeTLS, TLSSecret(instance)),
		secretVolume(volumeRoot, names.RootSecret()),
		secretVolume(volumeReplication, names.ReplicationSecret()),
		secretVolume(volumeControl, names.ControlSecret()),
		secretVolume(volumeApp, names.AppSecret()),
	}
	if restores(c) {
		store := secretVolume(volumeStore, names.RecoverySecret())
		store.Secret.Optional = new(true) // it goes once there are data
		out = append(out, store)
	}
	if c.Spec.Backup.Archives() {
		archive := secretVolume(volumeArchive, names.ArchiveSecret())
		archive.Secret.Optional = new(true) // an instance starts all the same
		out = append(out, archive)
	}
	return out
}

// NeededSecrets names the Secrets that an instance's Pod mounts, and does not start without.
func NeededSecrets(c *v1alpha1.Cluster, instance string) (names []string) {
	for _, v := range volumes(c, instance) {
		if s := v.Secret; s != nil && (s.Optional == nil || !*s.Optional) {
			names = append(names, s.SecretName)
		}
	}
	return names
}

// restores reports whether the cluster's first data come from a backup. That never changes in a
// cluster's life.
func restores(c *v1alpha1.Cluster) bool {
	return c.Spec.Bootstrap != nil && c.Spec.Bootstrap.Recovery != nil
}

func emptyVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

// secretVolume is readable by the Pod's group alone.
func secretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: new(int32(0o440))},
	}}
}

func mounts(c *v1alpha1.Cluster) []corev1.VolumeMount {
	out := []corev1.VolumeMount{
		{Name: volumeData, MountPath: layout.VolumeDir},
		{Name: volumeBin, MountPath: layout.BinDir, ReadOnly: true},
		{Name: volumeRun, MountPath: layout.RunDir},
		{Name: volumeTmp, MountPath: layout.TmpDir},
		{Name: volumeTLS, MountPath: layout.TLSDir, ReadOnly: true},
		{Name: volumeRoot, MountPath: layout.RootDir, ReadOnly: true},
		{Name: volumeReplication, MountPath: layout.ReplicationDir, ReadOnly: true},
		{Name: volumeControl, MountPath: layout.ControlDir, ReadOnly: true},
		{Name: volumeApp, MountPath: layout.AppDir, ReadOnly: true},
	}
	if restores(c) {
		out = append(out, corev1.VolumeMount{Name: volumeStore, MountPath: layout.StoreDir, ReadOnly: true})
	}
	if c.Spec.Backup.Archives() {
		out = append(out, corev1.VolumeMount{Name: volumeArchive, MountPath: layout.ArchiveDir, ReadOnly: true})
	}
	return out
}
