package resources

import (
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/pki"
)

const (
	componentBackup = "backup"
	volumeStore     = "store"
	// volumeBackupAccount is the account with which the Job logs in.
	volumeBackupAccount = "account"
	// backupAttempts is how often the Pod of a Job may end before the backup does.
	backupAttempts = 3
	// backupKept is how long a Job is kept after its end.
	backupKept = 24 * time.Hour
)

// BackupDeadline is how long the Job of a Backup may take.
const BackupDeadline = 48 * time.Hour

// BackupJobName is the name of a Backup's Job, and of all that the Job needs.
func BackupJobName(backup string) string { return backup + "-backup" }

// backupTLSSecretName is that of the certificate by which the Job is let in.
func backupTLSSecretName(backup string) string { return BackupJobName(backup) + "-tls" }

// BackupObjects are what the Job of a Backup needs: who it is, what it may do, the files of
// the store with the task among them, and its certificate.
func BackupObjects(c *v1alpha1.Cluster, b *v1alpha1.Backup, files map[string][]byte, leaf pki.Bundle) []metav1.Object {
	m := backupMeta(c, b, BackupJobName(b.Name))
	return []metav1.Object{
		&corev1.ServiceAccount{TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: *m.DeepCopy()},
		&rbacv1.Role{TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "Role"), ObjectMeta: *m.DeepCopy(),
			Rules: []rbacv1.PolicyRule{
				rule(v1alpha1.GroupVersion.Group, "backups", []string{b.Name}, "get"),
				rule(v1alpha1.GroupVersion.Group, "backups/status", []string{b.Name}, "get", "patch"),
			}},
		&rbacv1.RoleBinding{TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "RoleBinding"),
			ObjectMeta: *m.DeepCopy(),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: m.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: m.Name, Namespace: m.Namespace}}},
		filesSecret(*m.DeepCopy(), files),
		tlsSecret(backupMeta(c, b, backupTLSSecretName(b.Name)), leaf),
	}
}

// BackupJob takes a Backup. Its Pod is recreated when it ends before the backup does; what
// went wrong with the backup itself is no reason to.
func BackupJob(c *v1alpha1.Cluster, b *v1alpha1.Backup, operatorImage string) *batchv1.Job {
	t := jobTemplate(c, b)
	kept := backupKept
	if t.TTL != nil {
		kept = max(t.TTL.Duration, 0)
	}
	job := storeJob(c, backupMeta(c, b, BackupJobName(b.Name)), t, operatorImage, "run")
	job.Spec.BackoffLimit = new(int32(backupAttempts))
	job.Spec.ActiveDeadlineSeconds = new(int64(BackupDeadline.Seconds()))
	job.Spec.TTLSecondsAfterFinished = new(int32(kept.Seconds()))
	job.Spec.Template.Labels[v1alpha1.LabelBackup] = b.Name
	pod := &job.Spec.Template.Spec
	pod.ServiceAccountName = BackupJobName(b.Name)
	pod.Volumes = append(pod.Volumes, secretVolume(volumeTLS, backupTLSSecretName(b.Name)),
		backupAccountVolume(c))
	pod.Containers[0].Name = "backup"
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: volumeTLS, MountPath: layout.TLSDir, ReadOnly: true},
		corev1.VolumeMount{Name: volumeBackupAccount, MountPath: layout.BackupAccountDir, ReadOnly: true})
	return job
}

// backupAccountVolume has the account of Backups, and nothing else of the Secret that has it.
func backupAccountVolume(c *v1alpha1.Cluster) corev1.Volume {
	v := secretVolume(volumeBackupAccount, Names(c.Name).ControlSecret())
	v.Secret.Items = []corev1.KeyToPath{{Key: layout.KeyBackupUsername, Path: layout.KeyUsername},
		{Key: layout.KeyBackupPassword, Path: layout.KeyPassword}}
	return v
}

// storeJob runs a verb of "cnmsql backup" beside the files of a store, which are in the Secret
// of the Job's name.
func storeJob(
	c *v1alpha1.Cluster, m metav1.ObjectMeta, t v1alpha1.JobTemplate, operatorImage, verb string,
) *batchv1.Job {
	pod := metav1.ObjectMeta{Labels: jobPodLabels(c), Annotations: texts(t.Annotations)}
	maps.Copy(pod.Labels, texts(t.Labels))
	return &batchv1.Job{TypeMeta: typeMeta("batch/v1", "Job"), ObjectMeta: m, Spec: batchv1.JobSpec{
		Template: corev1.PodTemplateSpec{ObjectMeta: pod, Spec: corev1.PodSpec{
			EnableServiceLinks: new(false),
			RestartPolicy:      corev1.RestartPolicyNever,
			SecurityContext:    podSecurity(c),
			Affinity:           t.Affinity,
			NodeSelector:       t.NodeSelector,
			Tolerations:        t.Tolerations,
			PriorityClassName:  t.PriorityClassName,
			ImagePullSecrets:   pullSecrets(c),
			Containers: []corev1.Container{{
				Name: verb, Image: operatorImage, Command: []string{"/cnmsql", "backup", verb},
				Resources: jobResources(c, t), SecurityContext: containerSecurity(c),
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				VolumeMounts: []corev1.VolumeMount{
					{Name: volumeStore, MountPath: layout.StoreDir, ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{secretVolume(volumeStore, m.Name)},
		}},
	}}
}

// jobPodLabels are those by which people and their NetworkPolicies know the Pod of a Job. That of
// the Cluster is not among them: the Pod is no instance, and a Service of a user's that selects
// by it alone is not to lead here.
func jobPodLabels(c *v1alpha1.Cluster) map[string]string {
	out := ownLabels(c, componentBackup)
	delete(out, v1alpha1.LabelCluster)
	return out
}

// jobCPU is what a Job requests of the CPU at most.
var jobCPU = resource.MustParse("100m")

// jobResources are what the user says, or requests of what a Job needs most of the time: a Pod
// without any is the first that a node in need evicts, and one that a quota refuses. Of the CPU it
// requests no more than an instance, which would have to give way to it otherwise.
func jobResources(c *v1alpha1.Cluster, t v1alpha1.JobTemplate) corev1.ResourceRequirements {
	if len(t.Resources.Requests) > 0 || len(t.Resources.Limits) > 0 {
		return t.Resources
	}
	out := t.Resources.DeepCopy()
	out.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")}
	if cpu := cpuRequest(c.Spec.Resources); !cpu.IsZero() {
		if cpu.Cmp(jobCPU) > 0 {
			cpu = jobCPU
		}
		out.Requests[corev1.ResourceCPU] = cpu
	}
	return *out
}

// cpuRequest is what a container requests of the CPU: its limit, where it says nothing else.
func cpuRequest(of corev1.ResourceRequirements) resource.Quantity {
	if is, says := of.Requests[corev1.ResourceCPU]; says {
		return is
	}
	return of.Limits[corev1.ResourceCPU]
}

// jobTemplate is the Backup's, or that of all of the Cluster; b is nil for what is of no Backup.
func jobTemplate(c *v1alpha1.Cluster, b *v1alpha1.Backup) v1alpha1.JobTemplate {
	switch {
	case b != nil && b.Spec.JobTemplate != nil:
		return *b.Spec.JobTemplate
	case c.Spec.Backup != nil && c.Spec.Backup.JobTemplate != nil:
		return *c.Spec.Backup.JobTemplate
	default:
		return v1alpha1.JobTemplate{}
	}
}

// backupMeta is the metadata of an object that goes with a Backup.
func backupMeta(c *v1alpha1.Cluster, b *v1alpha1.Backup, name string) metav1.ObjectMeta {
	m := meta(c, name, componentBackup)
	m.Labels[v1alpha1.LabelBackup] = b.Name
	m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(b, v1alpha1.GroupVersion.WithKind("Backup"))}
	return m
}
