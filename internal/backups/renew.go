package backups

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backupjob"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/seal"
)

// renewEvery is how often the credentials of a Job that runs are compared with the user's: a
// token may expire while a large backup is taken.
const renewEvery = time.Minute

// renew brings the store's files of a Job up to date, and what it is to keep in the store afterwards: its Pod
// reads both again. What cannot be read of the user's Secrets now, stays.
func (r *Reconciler) renew(ctx context.Context, b *v1alpha1.Backup) error {
	store := resources.RecordOf(b).Store
	if store == nil {
		return nil
	}
	now, err := resources.StoreFiles(store, SecretReader(ctx, r.Live, b.Namespace, "objectStore"))
	if AsMissing(err) != nil {
		return nil
	}
	if err != nil {
		return err
	}
	var has corev1.Secret
	key := client.ObjectKey{Namespace: b.Namespace, Name: resources.BackupJobName(b.Name)}
	if err := r.Live.Get(ctx, key, &has); err != nil || !metav1.IsControlledBy(&has, b) {
		return client.IgnoreNotFound(err)
	}
	task, err := r.renewTask(ctx, b, has.Data[backupjob.FileTask])
	if err != nil {
		return err
	}
	return renewFiles(ctx, r.Client, &has, now, task)
}

// renewTask is the task of a Job with what is to be kept by the Cluster's word now: a policy that is lengthened
// while a large backup is taken must hold before anything is removed. The task stays where there is no Cluster
// any more, or where it cannot be read: then the Job removes nothing.
func (r *Reconciler) renewTask(ctx context.Context, b *v1alpha1.Backup, has []byte) ([]byte, error) {
	c, task := &v1alpha1.Cluster{}, backupjob.Task{}
	if json.Unmarshal(has, &task) != nil {
		return has, nil
	}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.Cluster.Name}, c)
	if err != nil {
		return has, client.IgnoreNotFound(err)
	}
	before := task.Retention
	task.Retention = nil
	if d := c.Spec.Backup; d != nil {
		task.Retention = retentionOf(b, d)
	}
	if ptr.Equal(before, task.Retention) {
		return has, nil
	}
	return json.MarshalIndent(task, "", "  ")
}

// renewAfter goes on with it once the Backup is complete: its Job then removes what has expired and
// merges small parts, which takes hours in a large archive. It tells when to do so again; 0 when the
// Job has ended.
func (r *Reconciler) renewAfter(ctx context.Context, b *v1alpha1.Backup) (again time.Duration, err error) {
	if b.Status.Phase != v1alpha1.BackupCompleted || b.Status.JobName == "" {
		return 0, nil
	}
	job := &batchv1.Job{}
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: b.Status.JobName}, job)
	if err != nil || !metav1.IsControlledBy(job, b) || ended(job) != "" {
		return 0, client.IgnoreNotFound(err)
	}
	return renewEvery, r.renew(ctx, b)
}

// renewFiles writes into the Secret of a Job the store's files as they are now, and its task, if they are
// others. The key of encryption stays: all of a backup is encrypted to one.
func renewFiles(
	ctx context.Context, to client.Writer, has *corev1.Secret, now map[string][]byte, task []byte,
) error {
	before := has.DeepCopy()
	if has.Data == nil {
		has.Data = map[string][]byte{} // somebody emptied it
	}
	for file, data := range now {
		if file != seal.FileIdentity && file != backupjob.FileTask {
			has.Data[file] = data
		}
	}
	if len(task) > 0 {
		has.Data[backupjob.FileTask] = task
	}
	if maps.EqualFunc(has.Data, before.Data, bytes.Equal) {
		return nil
	}
	return client.IgnoreNotFound(to.Patch(ctx, has, ifStill(before)))
}
