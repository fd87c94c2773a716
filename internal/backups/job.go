package backups

import (
	"context"
	"encoding/json"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/backupjob"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

// taking is what a Job needs to know.
type taking struct {
	cluster *v1alpha1.Cluster
	store   *v1alpha1.ObjectStoreSpec
	donor   string
	// why the donor is the primary, though a replica was preferred.
	why string
	id  string
	// files are the store's, and leaf is the Job's certificate.
	files map[string][]byte
	leaf  pki.Bundle
}

// record is what stays as it was decided.
func (t *taking) record() resources.Record {
	return resources.Record{Store: t.store, ID: t.id, Instance: t.donor, PullSecrets: t.cluster.Spec.ImagePullSecrets}
}

// note writes down that the backup runs.
func (t *taking) note(s *v1alpha1.BackupStatus, now time.Time) {
	s.Phase, s.Reason, s.Error, s.NoInstanceSince = v1alpha1.BackupRunning, "", "", nil
	s.Method, s.InstanceName, s.InstanceReason, s.BackupID = v1alpha1.MethodClone, t.donor, t.why, t.id
	s.ObjectStore, s.DestinationPath = t.store, resources.StorePath(t.store, t.cluster.Name)
	s.StartedAt = &metav1.Time{Time: now}
}

// prepare finds out what is to be taken from whom. Once that is written down it stays.
func (r *Reconciler) prepare(ctx context.Context, b *v1alpha1.Backup) (*taking, *refusal, error) {
	c := &v1alpha1.Cluster{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.Cluster.Name}, c)
	switch {
	case apierrors.IsNotFound(err):
		return nil, wait(core.BackupNoCluster,
			"there is no Cluster %s in namespace %s; create it, or delete this Backup",
			b.Spec.Cluster.Name, b.Namespace), nil
	case err != nil:
		return nil, nil, err
	case c.DeletionTimestamp != nil:
		return nil, wait(core.BackupNoCluster, "the Cluster %s is being deleted: no backup is taken of it any more; "+
			"delete this Backup", c.Name), nil
	}
	if b.Status.Phase == v1alpha1.BackupRunning {
		return r.prepareAgain(ctx, b, c)
	}
	t := &taking{cluster: c, store: b.Spec.ObjectStore, id: idOf(b)}
	if t.store == nil && c.Spec.Backup != nil {
		t.store = c.Spec.Backup.ObjectStore
	}
	if t.store == nil {
		return nil, final(core.BackupNoStore, "neither spec.objectStore nor spec.backup.objectStore of the Cluster "+
			"%s says where to; add one, and create another Backup", c.Name), nil
	}
	if no, err := queuedBehind(ctx, r.Client, b); no != nil || err != nil {
		return nil, no, err
	}
	donor, no := chooseDonor(c, b, r.Lags, lacksReplica(b, r.Now()))
	if no != nil {
		return nil, no, nil
	}
	t.donor, t.why = donor.Name, donor.Why
	if no, err := queuedBehind(ctx, r.Live, b); no != nil || err != nil {
		return nil, no, err
	}
	return r.complete(ctx, t)
}

// queuedBehind returns a refusal if another Backup of the Cluster runs. The cache will do for who waits
// on; that nobody runs must be true now. All Backups of the namespace are read for that, so that the API server
// is asked by who would begin, and not by all who wait.
func queuedBehind(ctx context.Context, from client.Reader, b *v1alpha1.Backup) (*refusal, error) {
	other, err := Running(ctx, from, b.Namespace, b.Spec.Cluster.Name, b.UID)
	if other == "" || err != nil {
		return nil, err
	}
	return wait(core.BackupOtherRuns, "the Backup %s of this Cluster is running; one is taken at a time", other), nil
}

// prepareAgain goes by what was decided when the backup began.
func (r *Reconciler) prepareAgain(ctx context.Context, b *v1alpha1.Backup, c *v1alpha1.Cluster) (*taking, *refusal,
	error) {
	is := resources.RecordOf(b)
	if is.Store == nil || is.ID == "" || is.Instance == "" {
		return nil, final(core.BackupNoStore, "it began, but its instance and its object store are not known any "+
			"more: create another Backup"), nil
	}
	return r.complete(ctx, &taking{cluster: c, store: is.Store, donor: is.Instance, id: is.ID})
}

// lacksAccount returns a refusal while the Secret has no account with which the Job could log in: its Pod could not
// mount it. Of a Cluster that an earlier release has made, the operator adds it.
func (r *Reconciler) lacksAccount(ctx context.Context, c *v1alpha1.Cluster) (*refusal, error) {
	name := resources.Names(c.Name).ControlSecret()
	var s corev1.Secret
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, &s)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil || !resources.Belongs(c, &s) || resources.LacksBackupAccount(s.Data) {
		return wait(core.BackupAccountMissing, "the Secret %s has no account of Backups yet: the operator makes it "+
			"when it looks at the Cluster the next time; if it does not, see the Cluster's status", name), nil
	}
	return nil, nil
}

// complete reads the files of the store, and makes the certificate. A Secret that is missing is a
// refusal, and so is an authority that is of no use: it is found before others wait for this Backup. What the
// API server could not tell is neither, and asked again.
func (r *Reconciler) complete(ctx context.Context, t *taking) (*taking, *refusal, error) {
	files, err := resources.StoreFiles(t.store, SecretReader(ctx, r.Live, t.cluster.Namespace, "objectStore"))
	if missing := AsMissing(err); missing != nil {
		return nil, wait(core.BackupStoreSecret, "%s", missing.Error()), nil
	}
	if err != nil {
		return nil, nil, err
	}
	if err := CheckKey(t.store, files); err != nil {
		return nil, wait(core.KeyInvalid, "%s", err.Error()), nil
	}
	if no, err := r.lacksAccount(ctx, t.cluster); no != nil || err != nil {
		return nil, no, err
	}
	t.files = files
	t.leaf, err = r.leaf(ctx, t.cluster)
	if broken := asBroken(err); broken != nil {
		return nil, wait(core.ProblemAuthorityBroken, "the Job is given no certificate: %s. Restore the Secret %s",
			broken, resources.Names(t.cluster.Name).CASecret()), nil
	}
	return t, nil, err
}

// idOf is the backup's name in the store: it sorts by time, and no other Backup has it.
func idOf(b *v1alpha1.Backup) string {
	return b.CreationTimestamp.UTC().Format("20060102T150405Z") + "-" + string(b.UID)[:min(len(b.UID), 8)]
}

// Running is the name of a Backup of a Cluster that runs, other than the one with a UID, if
// one is given; "" when none does. One that is being deleted runs as long as its Job is there.
func Running(ctx context.Context, live client.Reader, namespace, cluster string, but types.UID) (string, error) {
	var all v1alpha1.BackupList
	if err := live.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return "", err
	}
	for i := range all.Items {
		b := &all.Items[i]
		if but != "" && b.UID == but || b.Spec.Cluster.Name != cluster {
			continue
		}
		switch reads, err := Reads(ctx, live, b); {
		case err != nil:
			return "", err
		case reads:
			return b.Name, nil
		}
	}
	return "", nil
}

// Reads reports whether a Backup may read what its instance has: the instance serves nobody else meanwhile. One
// that is being deleted does so as long as its Job is there.
func Reads(ctx context.Context, from client.Reader, b *v1alpha1.Backup) (bool, error) {
	if b.Status.Phase != v1alpha1.BackupRunning || b.DeletionTimestamp == nil {
		return b.Status.Phase == v1alpha1.BackupRunning, nil
	}
	if time.Since(b.DeletionTimestamp.Time) > backup.DonorFrees {
		return false, nil // its Pod may stay for as long as a lost node does, and keeps no donor busy any more
	}
	job := &batchv1.Job{}
	err := from.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: resources.BackupJobName(b.Name)}, job)
	return err == nil && metav1.IsControlledBy(job, b) && ended(job) == "", client.IgnoreNotFound(err)
}

// makeJob makes the Job and what it needs. Whatever keeps it from being made is a refusal: others wait
// for this Backup, which must not last longer than a Backup may wait, and has to have a reason.
func (r *Reconciler) makeJob(ctx context.Context, b *v1alpha1.Backup, t *taking) *refusal {
	no, err := r.makeObjects(ctx, b, t)
	if err != nil {
		return wait(core.BackupJobRefused, "its Job, or what goes with it, could not be made: %s. It is tried again",
			err)
	}
	return no
}

// makeObjects makes them; what is there already stays. A name that somebody else has is a refusal.
func (r *Reconciler) makeObjects(ctx context.Context, b *v1alpha1.Backup, t *taking) (*refusal, error) {
	task, err := json.MarshalIndent(t.task(b), "", "  ")
	if err != nil {
		return nil, err
	}
	t.files[backupjob.FileTask] = task
	for _, obj := range append(resources.BackupObjects(t.cluster, b, t.files, t.leaf), resources.BackupJob(t.cluster,
		b, r.OperatorImage)) {
		if no, err := r.create(ctx, b, obj.(client.Object)); no != nil || err != nil {
			return no, err
		}
	}
	return nil, nil
}

func (t *taking) task(b *v1alpha1.Backup) backupjob.Task {
	out := backupjob.Task{
		Namespace: b.Namespace, Backup: b.Name, BackupUID: string(b.UID), ID: t.id,
		Cluster: t.cluster.Name, ClusterUID: string(t.cluster.UID), ClusterCreated: t.cluster.CreationTimestamp.UTC(),
		Epoch: t.cluster.Status.PrimaryEpoch, Instance: t.donor,
		Host: layout.InstanceHost(t.donor, b.Namespace), Port: layout.MySQLPort,
	}
	if p := t.cluster.Status.CurrentPrimary; p != "" && p != t.donor {
		out.Primary, out.PrimaryHost = p, layout.InstanceHost(p, b.Namespace)
	}
	if d := t.cluster.Spec.Backup; d != nil {
		out.Merges = b.Spec.ObjectStore == nil && t.cluster.Spec.Backup.Archives()
		out.MaxBytesPerSecond = d.MaxBytesPerSecond
		out.Uncompressed = d.Compression == v1alpha1.CompressionNone
		out.Retention = retentionOf(b, d)
	}
	return out
}

// leaf is a certificate for the Job, of the Cluster's own authority.
func (r *Reconciler) leaf(ctx context.Context, c *v1alpha1.Cluster) (pki.Bundle, error) {
	ca, err := Authority(ctx, r.Live, c)
	if err != nil {
		return pki.Bundle{}, err
	}
	leaf, err := ca.Issue(pki.BackupLeaf(), r.Now())
	if err != nil {
		return leaf, &AuthorityError{err}
	}
	return leaf, nil
}

// create makes an object, unless it is there and this Backup's. One that the API server does not
// want is a refusal.
func (r *Reconciler) create(ctx context.Context, b *v1alpha1.Backup, obj client.Object) (*refusal, error) {
	kind, name := obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName()
	err := r.Client.Create(ctx, obj, client.FieldOwner(resources.FieldManager))
	if isRefused(err) {
		return wait(core.BackupJobRefused, "the API server refuses the %s %s: %s. See the quotas and the admission "+
			"policies of the namespace", kind, name, err), nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return nil, err
	}
	if !metav1.IsControlledBy(obj, b) {
		return final(core.BackupNameTaken, "the %s %s exists and does not belong to this Backup; delete it, and "+
			"create a Backup with another name", kind, name), nil
	}
	return nil, nil
}
