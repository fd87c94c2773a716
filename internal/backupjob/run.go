package backupjob

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/mysql"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// sweepLimit bounds the removal of what nobody needs.
const sweepLimit = time.Minute

// Options are where the Job finds what it needs.
type Options struct {
	// StoreDir has the store's files and the Task, TLSDir the certificate by which mysqld
	// lets the Job in (ca.crt, tls.crt, tls.key), AccountDir the account (username, password).
	StoreDir, TLSDir, AccountDir string
	// Kubernetes is where the Backup is.
	Kubernetes client.Client
	Log        *slog.Logger
}

// Run has the backup taken and writes what came of it into the Backup's status. It returns
// an error only if that could not be done, or is not known: the Pod is then recreated, and begins again.
func Run(ctx context.Context, o Options) error {
	t, err := readTask(o.StoreDir)
	if err != nil {
		return err
	}
	tell, err := newTeller(ctx, o, t)
	if err != nil {
		return err
	}
	if tell.isOver() {
		return nil
	}
	o.Log.Info("the Job takes a backup", "cluster", t.Cluster, "instance", t.Instance, "id", t.ID)
	s, m, err := take(ctx, o, t, tell)
	if ctx.Err() != nil {
		return fmt.Errorf("the Pod was stopped before the backup ended: %w", context.Cause(ctx))
	}
	if open := (*openError)(nil); errors.As(err, &open) {
		tell.open(ctx, open)
		return err
	}
	if err != nil {
		o.Log.Error("the backup failed", "error", err)
		return tell.failed(ctx, err)
	}
	o.Log.Info("the backup is complete", "bytes", m.RawSize, "stored", m.StoredSize, "after",
		m.End.Sub(m.Begin).Round(time.Second).String())
	if err := tell.completed(ctx, m); err != nil {
		return err
	}
	o.expire(ctx, s, t, tell)
	o.merge(ctx, s, t, tell)
	return nil
}

// openError is why it is not known whether the backup is whole in the store: it is told neither complete
// nor failed, and the next Pod looks again.
type openError struct{ error }

func (e *openError) Error() string {
	return "it is not known whether the backup is whole in the store: " + e.error.Error()
}
func (e *openError) Unwrap() error { return e.error }

func take(ctx context.Context, o Options, t Task, tell *teller) (store.Store, *backup.Manifest, error) {
	s, m, err := look(ctx, o, t)
	if known := (*backup.Reason)(nil); err != nil && tell.hasBegun() && !errors.As(err, &known) {
		err = &openError{err}
	}
	if err == nil && m == nil {
		m, err = takeInto(ctx, s, o, t, tell)
	}
	if err == nil {
		o.sweep(ctx, s, m)
	}
	return s, m, err
}

// look opens the store, and returns the backup if it is there: a Pod before this one may have ended between
// the manifest and its last word.
func look(ctx context.Context, o Options, t Task) (store.Store, *backup.Manifest, error) {
	s, err := store.Open(o.StoreDir)
	if err != nil {
		return nil, nil, err
	}
	s = store.Limited(s, t.MaxBytesPerSecond)
	m, err := whole(ctx, s, t)
	return s, m, err
}

// whole returns the backup if it is whole in the store, and nil if it is not there. That of another Cluster is
// refused as its place is: ArchiveTaken.
func whole(ctx context.Context, s store.Store, t Task) (*backup.Manifest, error) {
	m, err := backup.Read(ctx, s, t.Cluster, t.ID)
	switch {
	case errors.Is(err, backup.BackupUnknown):
		return nil, nil
	case err == nil && m.Cluster.UID != t.ClusterUID:
		return nil, fmt.Errorf("backup %s belongs to cluster %s of namespace %s with UID %s, and this is %s of %s "+
			"with %s: %w", t.ID, m.Cluster.Cluster, m.Cluster.Namespace, m.Cluster.UID, t.Cluster, t.Namespace,
			t.ClusterUID, backup.ArchiveTaken)
	}
	return m, err
}

func takeInto(ctx context.Context, s store.Store, o Options, t Task, tell *teller) (*backup.Manifest, error) {
	key, err := seal.Read(o.StoreDir)
	if err != nil {
		return nil, err
	}
	if err := awaitAccount(ctx, o.Log, t.Instance, o.donorAsked(t), tell.lockedOut); err != nil {
		return nil, err
	}
	donor, err := donorOf(o, t, t.Host)
	if err != nil {
		return nil, err
	}
	if err := o.catchUp(ctx, t, donor); err != nil {
		return nil, err
	}
	if err := readable(ctx, t, func(ctx context.Context) ([]string, error) {
		return mysql.EncryptedLogsAt(ctx, donor.Address, donor.TLS, accountOf(donor))
	}); err != nil {
		return nil, err
	}
	if err := tell.begins(ctx); err != nil {
		return nil, &openError{err}
	}
	m, err := backup.Take(ctx, donor, s, backup.Options{
		Identity: backup.Identity{Cluster: t.Cluster, Namespace: t.Namespace, UID: t.ClusterUID,
			CreatedAt: t.ClusterCreated},
		ID: t.ID, Instance: t.Instance, Epoch: t.Epoch, Key: key, Uncompressed: t.Uncompressed,
		Executed: executedAt(donor),
		Progress: tell.progress,
	})
	return settle(ctx, s, t, m, err)
}

// settle looks what there is where taking a backup failed and may have made one, or where another Pod of
// the Job, of which nobody heard any more, has written it.
func settle(ctx context.Context, s store.Store, t Task, m *backup.Manifest, err error) (*backup.Manifest, error) {
	if !backup.IsUnsure(err) {
		return m, err
	}
	is, unread := whole(ctx, s, t)
	if known := (*backup.Reason)(nil); is != nil || errors.As(unread, &known) {
		return is, unread
	}
	return nil, &openError{err}
}

func (o Options) catchUp(ctx context.Context, t Task, donor clone.Donor) error {
	if t.Primary == "" {
		return nil
	}
	primary, err := donorOf(o, t, t.PrimaryHost)
	if err != nil {
		return err
	}
	return catchUp(ctx, o.Log, t, executedAt(primary), executedAt(donor))
}

func executedAt(d clone.Donor) executed {
	return func(ctx context.Context) (gtid.Set, error) {
		return mysql.ExecutedAt(ctx, d.Address, d.TLS, accountOf(d))
	}
}

func accountOf(d clone.Donor) mysql.Account { return mysql.Account{User: d.User, Password: d.Password} }

// readable refuses a donor that encrypts its logs: the snapshot would come to its redo log when all
// else is uploaded. Who cannot ask goes on, for then the snapshot refuses.
func readable(ctx context.Context, t Task, encrypted func(context.Context) ([]string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	on, err := encrypted(ctx)
	if err != nil || len(on) == 0 {
		return nil
	}
	return fmt.Errorf("%s has %s=ON: %w", t.Instance, strings.Join(on, "=ON and "), clone.LogsEncrypted)
}

// sweep removes what Pods before this one have left of the backup. It is complete without.
func (o Options) sweep(ctx context.Context, s store.Store, m *backup.Manifest) {
	ctx, cancel := context.WithTimeout(ctx, sweepLimit)
	defer cancel()
	swept, err := backup.Sweep(ctx, s, m)
	if err != nil || swept > 0 {
		o.Log.Info("the Job removed parts that earlier attempts left", "parts", swept, "error", err)
	}
}

// donorOf is an instance, and how it lets us in.
func donorOf(o Options, t Task, host string) (clone.Donor, error) {
	conf, err := pki.ClientTLS(o.TLSDir, host, tls.VersionTLS12)
	if err != nil {
		return clone.Donor{}, fmt.Errorf("the certificate of the backup: %w", err)
	}
	d := clone.Donor{Address: net.JoinHostPort(host, strconv.Itoa(t.Port)), TLS: conf}
	for key, into := range map[string]*string{"username": &d.User, "password": &d.Password} {
		text, err := os.ReadFile(filepath.Join(o.AccountDir, key))
		if err != nil {
			return d, fmt.Errorf("reading the account of the backup: %w", err)
		}
		*into = layout.SecretValue(text)
	}
	return d, nil
}
