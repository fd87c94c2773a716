package resources

import (
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
)

const (
	// removalLimit is how long one attempt may take, removalAttempts how often its Pod may
	// end, and removalKept how long it is kept when nobody removes it.
	removalLimit    = time.Hour
	removalAttempts = 1
	removalKept     = 24 * time.Hour
)

// RemovalJobName is the name of the Job that removes a Backup's data, and of its Secret.
func RemovalJobName(backup string) string { return backup + "-remove" }

// RemovalJob removes a Backup's data from the store. It does not belong to the Backup, which
// is being deleted: what belongs to it may be deleted first.
func RemovalJob(c *v1alpha1.Cluster, b *v1alpha1.Backup, operatorImage string) *batchv1.Job {
	job := BackupJob(c, b, operatorImage)
	job.ObjectMeta = removalMeta(job.ObjectMeta, b)
	job.Spec.BackoffLimit = new(int32(removalAttempts))
	job.Spec.ActiveDeadlineSeconds = new(int64(removalLimit.Seconds()))
	job.Spec.TTLSecondsAfterFinished = new(int32(removalKept.Seconds()))
	pod := &job.Spec.Template.Spec
	if !isAmbient(b.Status.ObjectStore) {
		pod.ServiceAccountName = "" // whose token it does not need, and who may be gone first
	}
	pod.AutomountServiceAccountToken = new(false)
	pod.Volumes = []corev1.Volume{secretVolume(volumeStore, job.Name)}
	container := &pod.Containers[0]
	container.Name, container.Command = "remove", []string{"/cnmsql", "backup", "remove"}
	container.VolumeMounts = container.VolumeMounts[:1] // the store
	return job
}

// isAmbient: the store's credentials come from where the Pod runs, and mostly by its ServiceAccount.
func isAmbient(s *v1alpha1.ObjectStoreSpec) bool {
	if s == nil {
		return false
	}
	config, _ := storeConfig(s)
	return config.Ambient
}

// RemovalAccount is the ServiceAccount by which a RemovalJob reaches the store, as the backup's
// own Job did: of the same name, by which roles are given, and allowed nothing else. It goes
// with the Job. nil if the credentials are in files.
func RemovalAccount(job *batchv1.Job, b *v1alpha1.Backup) *corev1.ServiceAccount {
	if !isAmbient(b.Status.ObjectStore) {
		return nil
	}
	m := ofRemoval(job, b)
	m.Name = BackupJobName(b.Name)
	return &corev1.ServiceAccount{TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: m}
}

// RemovalSecret has the files of the store, and the task among them. It goes with the Job.
func RemovalSecret(job *batchv1.Job, b *v1alpha1.Backup, files map[string][]byte) *corev1.Secret {
	return filesSecret(ofRemoval(job, b), files)
}

// ofRemoval is the metadata of what goes with a RemovalJob.
func ofRemoval(job *batchv1.Job, b *v1alpha1.Backup) metav1.ObjectMeta {
	m := removalMeta(job.ObjectMeta, b)
	owner := metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))
	m.OwnerReferences = []metav1.OwnerReference{*owner}
	return m
}

func removalMeta(m metav1.ObjectMeta, b *v1alpha1.Backup) metav1.ObjectMeta {
	annotations := map[string]string{}
	maps.Copy(annotations, m.Annotations)
	annotations[v1alpha1.AnnotationBackupUID] = string(b.UID)
	return metav1.ObjectMeta{Name: RemovalJobName(b.Name), Namespace: m.Namespace,
		Labels: m.Labels, Annotations: annotations}
}
