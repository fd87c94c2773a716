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
	pod.ServiceAccountName, pod.AutomountServiceAccountToken = "", new(false)
	pod.Volumes = []corev1.Volume{secretVolume(volumeStore, job.Name)}
	container := &pod.Containers[0]
	container.Name, container.Command = "remove", []string{"/cnmsql", "backup", "remove"}
	container.VolumeMounts = container.VolumeMounts[:1] // the store
	return job
}

// RemovalSecret has the files of the store, and the task among them. It goes with the Job.
func RemovalSecret(job *batchv1.Job, b *v1alpha1.Backup, files map[string][]byte) *corev1.Secret {
	m := removalMeta(job.ObjectMeta, b)
	owner := metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))
	m.OwnerReferences = []metav1.OwnerReference{*owner}
	return filesSecret(m, files)
}

func removalMeta(m metav1.ObjectMeta, b *v1alpha1.Backup) metav1.ObjectMeta {
	annotations := map[string]string{}
	maps.Copy(annotations, m.Annotations)
	annotations[v1alpha1.AnnotationBackupUID] = string(b.UID)
	return metav1.ObjectMeta{Name: RemovalJobName(b.Name), Namespace: m.Namespace,
		Labels: m.Labels, Annotations: annotations}
}
