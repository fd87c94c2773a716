package backups

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/internal/backupjob"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/store"
)

// A removal that fails is started again after a quarter of the time since the deletion was
// asked for, within these bounds.
const (
	firstPause = 30 * time.Second
	maxPause   = time.Hour
	// heldPause is when it is looked again whether what keeps a Job from being made is gone: who mends a
	// Secret is not to wait for an hour, and no Job is spent on it.
	heldPause = time.Minute
)

// removal is what goes from a store with an object that is being deleted.
type removal struct {
	resources.Removal
	object client.Object
	// kind of the object, where in the store its data lie, for people, and the command that
	// leaves them there.
	kind, where, forget string
	task                backupjob.Task
	// tell writes down how it stands.
	tell func(ctx context.Context, is metav1.ConditionStatus, reason core.Reason, message string) error
	// told is set once more was told than that the Job goes on: why it cannot, or why one before it failed.
	told bool
	// fails tells of what does not go with the object why it cannot be done now; then there is no tell.
	fails func(ctx context.Context, why string) error
}

// remover brings removals a step further.
type remover struct {
	client client.Client
	live   client.Reader
	image  string
	now    func() time.Time
}

// follow has the Job made that removes the data, and looks what comes of it: done once they are
// gone. Until then it is to be looked again some time later.
func (r *remover) follow(ctx context.Context, m *removal) (done bool, again time.Duration, err error) {
	job, err := r.job(ctx, m.object.GetNamespace(), m.Name)
	switch {
	case apierrors.IsNotFound(err):
		again, err = r.begin(ctx, m, nil)
		return false, again, err
	case err != nil:
		return false, 0, err
	case !m.IsOf(job):
		again, err = r.held(ctx, m, "the Job "+job.Name+" exists and is not this "+m.kind+"'s; delete it")
		return false, again, err
	case job.DeletionTimestamp != nil:
		return false, lookAgain, nil
	case conditionOf(job, batchv1.JobComplete) != nil:
		return true, 0, nil
	}
	failed := conditionOf(job, batchv1.JobFailed)
	switch {
	case failed == nil:
		again, err = r.goesOn(ctx, m, job)
	case r.now().Sub(failed.LastTransitionTime.Time) >= r.pause(m):
		again, err = lookAgain, r.drop(ctx, job, metav1.DeletePropagationBackground)
	default:
		var why string
		if why, err = r.lastWords(ctx, job); err == nil {
			again, err = r.failed(ctx, m, fmt.Sprintf("the Job %s failed (%s): %s", job.Name, failed.Message, why))
		}
	}
	return false, again, err
}

// goesOn makes what a Job lacks, if the operator ended before that, renews its credentials, and tells why
// it does not run.
func (r *remover) goesOn(ctx context.Context, m *removal, job *batchv1.Job) (again time.Duration, err error) {
	if again, err = r.begin(ctx, m, job); err != nil {
		return 0, err
	}
	why, err := jobProblemOf(ctx, r.live, job, r.now())
	switch {
	case err != nil:
		return again, err
	case why != nil:
		_, err = r.held(ctx, m, why.message)
		return lookAgain, err
	}
	return again, r.runs(ctx, m, job)
}

// runs tells that the Job goes on: a store that cannot be reached keeps it for minutes. What was told
// of one before it that failed says more.
func (r *remover) runs(ctx context.Context, m *removal, job *batchv1.Job) error {
	if m.tell == nil || m.told {
		return nil
	}
	return m.tell(ctx, metav1.ConditionUnknown, core.ReasonBackupRemovalWaits, fmt.Sprintf("the Job %s removes %s; "+
		"if that takes long, see why: kubectl logs -l %s=%s -n %s; to keep the data there and remove the %s: %s",
		job.Name, m.where, batchv1.JobNameLabel, job.Name, job.Namespace, m.kind, m.forget))
}

// begin makes the Job, if there is none yet, and what goes with it. What keeps it from being made is
// told. What the API server does not want waits for somebody who changes something; all else is tried
// again at once.
func (r *remover) begin(ctx context.Context, m *removal, job *batchv1.Job) (again time.Duration, err error) {
	again, err = r.make(ctx, m, job)
	if isRefused(err) {
		return r.held(ctx, m, fmt.Sprintf("the API server refuses its Job %s, or what goes with it: %s", m.Name, err))
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		why := fmt.Sprintf("its Job %s, or what goes with it, could not be made: %s", m.Name, err)
		_, untold := r.held(ctx, m, why)
		err = errors.Join(err, untold)
	}
	return again, err
}

func (r *remover) make(ctx context.Context, m *removal, job *batchv1.Job) (again time.Duration, err error) {
	files, err := resources.StoreFiles(m.Store, SecretReader(ctx, r.live, m.object.GetNamespace(), "objectStore"))
	if missing := AsMissing(err); missing != nil {
		return r.held(ctx, m, missing.Error())
	}
	if err != nil {
		return 0, err
	}
	if files[backupjob.FileTask], err = json.Marshal(m.task); err != nil {
		return 0, err
	}
	if taken, err := r.takenAccount(ctx, m); taken || err != nil {
		return r.withoutAccount(ctx, m, job, err)
	}
	if job == nil {
		job = m.Job(r.image)
		if err := r.client.Create(ctx, job, client.FieldOwner(resources.FieldManager)); err != nil {
			return 0, err
		}
	}
	if err := r.account(ctx, m, job); err != nil {
		return 0, err
	}
	secret := m.Secret(job, files)
	err = r.client.Create(ctx, secret, client.FieldOwner(resources.FieldManager))
	if !apierrors.IsAlreadyExists(err) {
		return lookAgain, err
	}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return 0, err
	}
	if !m.IsOf(secret) {
		return r.held(ctx, m, "the Secret "+secret.Name+" exists and is not this "+m.kind+"'s; delete it")
	}
	// The Job of a Cluster that has another store by now goes on where it is, with what it has.
	if !bytes.Equal(secret.Data[store.FileConfig], files[store.FileConfig]) {
		return lookAgain, nil
	}
	return lookAgain, renewFiles(ctx, r.client, secret, files, nil)
}

// takenAccount reports whether the ServiceAccount by whose name a Job would run is somebody else's. It
// reads past the cache.
func (r *remover) takenAccount(ctx context.Context, m *removal) (bool, error) {
	if m.Account() == "" {
		return false, nil
	}
	account := &corev1.ServiceAccount{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: m.object.GetNamespace(), Name: m.Account()}, account)
	return err == nil && !m.IsAccount(account), client.IgnoreNotFound(err)
}

// withoutAccount ends a Job that runs as somebody else's ServiceAccount, and tells why there is none;
// with an error it does nothing.
func (r *remover) withoutAccount(ctx context.Context, m *removal, job *batchv1.Job, err error,
) (again time.Duration, _ error) {
	if err == nil && job != nil {
		err = r.drop(ctx, job, metav1.DeletePropagationBackground)
	}
	if err != nil {
		return 0, err
	}
	return r.held(ctx, m, "the ServiceAccount "+m.Account()+", by which its Job would reach the store, exists and is "+
		"not this "+m.kind+"'s; delete it")
}

// account has the ServiceAccount made again if it went before the object does, as with a
// deletion in the foreground. One that is there stays as it is: whose it is was looked at.
func (r *remover) account(ctx context.Context, m *removal, job *batchv1.Job) error {
	account := m.ServiceAccount(job)
	if account == nil {
		return nil
	}
	err := r.client.Create(ctx, account, client.FieldOwner(resources.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// held tells why no Job removes the data now, and what can be done. It holds until one does.
func (r *remover) held(ctx context.Context, m *removal, why string) (again time.Duration, err error) {
	if again, err = r.stays(ctx, m, core.ReasonBackupRemovalHeld, why); m.fails == nil {
		again = min(again, heldPause)
	}
	return again, err
}

// failed tells why the Job did not remove the data. It holds until they are gone, for the next Job may
// take minutes until it knows more.
func (r *remover) failed(ctx context.Context, m *removal, why string) (again time.Duration, err error) {
	return r.stays(ctx, m, core.ReasonBackupRemovalFailed, why)
}

// stays tells that the data are still there.
func (r *remover) stays(
	ctx context.Context, m *removal, reason core.Reason, why string,
) (again time.Duration, err error) {
	if m.fails != nil {
		return maxPause, m.fails(ctx, why)
	}
	m.told = true
	message := fmt.Sprintf("%s is not removed from the store: %s. It is tried again; to keep the data there and "+
		"remove the %s: %s", m.where, why, m.kind, m.forget)
	return r.pause(m), m.tell(ctx, metav1.ConditionUnknown, reason, message)
}

// pause before a removal is tried again.
func (r *remover) pause(m *removal) time.Duration {
	return min(max(r.now().Sub(m.object.GetDeletionTimestamp().Time)/4, firstPause), maxPause)
}

// end removes the Job of a removal that is over.
func (r *remover) end(ctx context.Context, m *removal) error {
	job, err := r.job(ctx, m.object.GetNamespace(), m.Name)
	if err == nil && m.IsOf(job) {
		err = r.drop(ctx, job, metav1.DeletePropagationBackground)
	}
	return client.IgnoreNotFound(err)
}

// job reads one; NotFound if there is none.
func (r *remover) job(ctx context.Context, namespace, name string) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	return job, r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, job)
}

// drop deletes a Job, if it is still the one that was read.
func (r *remover) drop(ctx context.Context, job *batchv1.Job, how metav1.DeletionPropagation) error {
	err := r.client.Delete(ctx, job, client.Preconditions{UID: &job.UID}, client.PropagationPolicy(how))
	return client.IgnoreNotFound(err)
}

// namespaceEnds reports whether the namespace is being deleted, so that no Job can be made in it
// any more. It reads past the cache. A namespace that is not there is not said to end.
func (r *remover) namespaceEnds(ctx context.Context, name string) (bool, error) {
	var ns corev1.Namespace
	err := r.live.Get(ctx, client.ObjectKey{Name: name}, &ns)
	return ns.DeletionTimestamp != nil, client.IgnoreNotFound(err)
}

// lastWords are those of the Job's Pods.
func (r *remover) lastWords(ctx context.Context, job *batchv1.Job) (string, error) {
	pods, err := podsOf(ctx, r.live, job)
	if err != nil {
		return "", err
	}
	for _, p := range pods {
		for _, s := range p.Status.ContainerStatuses {
			if s.State.Terminated == nil || s.State.Terminated.Message == "" {
				continue
			}
			lines := strings.Split(strings.TrimSpace(s.State.Terminated.Message), "\n")
			return lines[len(lines)-1], nil
		}
	}
	return "look at its Pods", nil
}

func conditionOf(job *batchv1.Job, of batchv1.JobConditionType) *batchv1.JobCondition {
	i := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == of && c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		return nil
	}
	return &job.Status.Conditions[i]
}

// endTaking ends the Job that takes a Backup, and waits until its Pods are gone; its name as
// long as they are not.
func (r *remover) endTaking(ctx context.Context, b client.Object) (name string, err error) {
	isIts := func(job *batchv1.Job) bool { return metav1.IsControlledBy(job, b) }
	return r.endJob(ctx, b.GetNamespace(), resources.BackupJobName(b.GetName()), isIts)
}

// endJob ends a Job that is meant, and waits until its Pods are gone; its name as long as they are not.
func (r *remover) endJob(ctx context.Context, namespace, of string, isMeant func(*batchv1.Job) bool,
) (name string, err error) {
	job, err := r.job(ctx, namespace, of)
	if err != nil || !isMeant(job) {
		return "", client.IgnoreNotFound(err)
	}
	if job.DeletionTimestamp == nil {
		err = r.drop(ctx, job, metav1.DeletePropagationForeground)
	}
	return job.Name, err
}
