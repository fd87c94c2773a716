package backups

import (
	"bytes"
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/seal"
)

// renewEvery is how often the credentials of a Job that runs are compared with the user's: a
// token may expire while a large backup is taken.
const renewEvery = time.Minute

// renew brings the store's files of a Job up to date, which its Pod reads again. The key of
// encryption stays what it was: all of a backup is encrypted to one. What cannot be read of
// the user's Secrets now, stays, too.
func (r *Reconciler) renew(ctx context.Context, b *v1alpha1.Backup) error {
	store := resources.RecordOf(b).Store
	if store == nil {
		return nil
	}
	now, err := resources.StoreFiles(store, SecretReader(ctx, r.Live, b.Namespace))
	if AsMissing(err) != nil {
		return nil
	}
	if err != nil {
		return err
	}
	delete(now, seal.FileIdentity)
	var has corev1.Secret
	key := client.ObjectKey{Namespace: b.Namespace, Name: resources.BackupJobName(b.Name)}
	if err := r.Live.Get(ctx, key, &has); err != nil || !metav1.IsControlledBy(&has, b) {
		return client.IgnoreNotFound(err)
	}
	before := has.DeepCopy()
	maps.Copy(has.Data, now)
	if maps.EqualFunc(has.Data, before.Data, bytes.Equal) {
		return nil
	}
	return r.Client.Patch(ctx, &has, ifStill(before))
}
