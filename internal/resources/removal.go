package resources

import (
	"cmp"
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

// Removal is what goes from a store with an object that is being deleted, by a Job. The Job does
// not belong to that object: what belongs to it may be deleted first. An ArchiveMerge is made alike.
type Removal struct {
	// Name of the Job, and of its Secret.
	Name string
	// Store from which it goes.
	Store *v1alpha1.ObjectStoreSpec

	of metav1.Object
	// uid is the annotation that has the object's UID.
	uid string
	// cluster gives the Pod its settings. Of one that is gone, nothing but the name is known.
	cluster *v1alpha1.Cluster
	labels  map[string]string
	// verb of "cnmsql backup", and the template of its Job.
	verb     string
	template v1alpha1.JobTemplate
	// belongs: what is done is nothing once the Cluster is gone, and goes with it.
	belongs bool
	// kept is for how long the Job is kept when it has ended.
	kept time.Duration
	// account is the ServiceAccount to which a role in the store is given.
	account string
}

// BackupRemoval is that of a Backup's data.
func BackupRemoval(c *v1alpha1.Cluster, b *v1alpha1.Backup) Removal {
	return Removal{Name: b.Name + "-remove", Store: RecordOf(b).Store,
		of: b, uid: v1alpha1.AnnotationBackupUID, cluster: c, labels: map[string]string{v1alpha1.LabelBackup: b.Name},
		kept: removalKept, verb: "remove", template: jobTemplate(c, b), account: BackupJobName(b.Name)}
}

// ArchiveRemoval is that of all that a Cluster has in the store of its spec.backup.
func ArchiveRemoval(c *v1alpha1.Cluster) Removal {
	r := Removal{Name: ArchiveRemovalJobName(c.Name), of: c, uid: v1alpha1.AnnotationClusterUID, cluster: c,
		kept: removalKept, verb: "remove-archive", template: jobTemplate(c, nil),
		account: cmp.Or(c.Status.CurrentPrimary, InstanceName(c.Name, 1))}
	if c.Spec.Backup != nil {
		r.Store = c.Spec.Backup.ObjectStore
	}
	return r
}

// mergeKept is longer than until the next one: the Job that has ended tells when that was.
const mergeKept = 14 * 24 * time.Hour

// ArchiveMerge merges small parts of what a Cluster has in the store of its spec.backup. Nothing goes
// from there that is not in a bundle.
func ArchiveMerge(c *v1alpha1.Cluster) Removal {
	r := ArchiveRemoval(c)
	r.Name, r.verb, r.kept, r.belongs = ArchiveMergeJobName(c.Name), "merge-archive", mergeKept, true
	return r
}

// ArchiveMergeJobName is the name of an ArchiveMerge. No Job of a Backup has it.
func ArchiveMergeJobName(cluster string) string { return cluster + "-merge-all" }

// ArchiveRemovalJobName is the name of an ArchiveRemoval. No Backup's removal has it.
func ArchiveRemovalJobName(cluster string) string { return cluster + "-remove-all" }

// IsOf reports whether a Job, or its Secret, was made for this removal.
func (r Removal) IsOf(obj metav1.Object) bool {
	return obj.GetAnnotations()[r.uid] == string(r.of.GetUID())
}

// Job returns the Job that removes what the Removal is about.
func (r Removal) Job(operatorImage string) *batchv1.Job {
	job := storeJob(r.cluster, r.meta(), r.template, operatorImage, r.verb)
	job.Spec.BackoffLimit = new(int32(removalAttempts))
	job.Spec.ActiveDeadlineSeconds = new(int64(removalLimit.Seconds()))
	job.Spec.TTLSecondsAfterFinished = new(int32(r.kept.Seconds()))
	maps.Copy(job.Spec.Template.Labels, r.labels)
	pod := &job.Spec.Template.Spec
	pod.ServiceAccountName = r.Account()
	pod.AutomountServiceAccountToken = new(false)
	return job
}

// isAmbient reports whether the store's credentials come from where the Pod runs, mostly by its
// ServiceAccount, and from no Secret.
func (r Removal) isAmbient() bool {
	if r.Store == nil {
		return false
	}
	config, _ := storeConfig(r.Store)
	return config.Ambient
}

// Account is the name of the ServiceAccount by which a Job reaches the store; "" if it needs none.
func (r Removal) Account() string {
	if !r.isAmbient() {
		return ""
	}
	return r.account
}

// IsAccount reports whether a ServiceAccount is the one by which what wrote to the store did, or was made
// for a Job of this removal. Any other may be allowed what nobody allowed whoever deletes the object.
func (r Removal) IsAccount(account *corev1.ServiceAccount) bool {
	job := metav1.GetControllerOfNoCopy(account)
	return metav1.IsControlledBy(account, r.of) ||
		r.IsOf(account) && job != nil && job.Kind == "Job" && job.Name == r.Name
}

// ServiceAccount is that by which a Job reaches the store, as what wrote there did: of the same
// name, by which roles are given, and allowed nothing else. It goes with the Job. nil if the
// credentials are in files.
func (r Removal) ServiceAccount(job *batchv1.Job) *corev1.ServiceAccount {
	if !r.isAmbient() {
		return nil
	}
	m := r.with(job)
	m.Name = r.account
	return &corev1.ServiceAccount{TypeMeta: typeMeta("v1", "ServiceAccount"), ObjectMeta: m}
}

// Secret has the files of the store, and the task among them. It goes with the Job.
func (r Removal) Secret(job *batchv1.Job, files map[string][]byte) *corev1.Secret {
	return filesSecret(r.with(job), files)
}

// with is the metadata of what goes with a Job.
func (r Removal) with(job *batchv1.Job) metav1.ObjectMeta {
	m := r.meta()
	m.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	return m
}

func (r Removal) meta() metav1.ObjectMeta {
	m := meta(r.cluster, r.Name, componentBackup)
	maps.Copy(m.Labels, r.labels)
	if !r.belongs {
		m.OwnerReferences = nil
	}
	annotations := map[string]string{}
	maps.Copy(annotations, m.Annotations)
	annotations[r.uid] = string(r.of.GetUID())
	m.Annotations = annotations
	return m
}
