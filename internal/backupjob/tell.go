package backupjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backup"
)

const (
	// often is the least time between two words about progress, each a write to the API
	// server.
	often = 5 * time.Second
	// lastWord is how long the Job tries to write down what came of the backup.
	lastWord = 2 * time.Minute
)

// teller writes into the Backup's status.
type teller struct {
	o      Options
	backup *v1alpha1.Backup
	began  time.Time
	told   time.Time
}

func newTeller(ctx context.Context, o Options, t Task) (*teller, error) {
	b := &v1alpha1.Backup{}
	if err := o.Kubernetes.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Backup}, b); err != nil {
		return nil, fmt.Errorf("reading the Backup %s: %w", t.Backup, err)
	}
	if string(b.UID) != t.BackupUID {
		return nil, fmt.Errorf("the Backup %s is another one by now: nothing is done", t.Backup)
	}
	return &teller{o: o, backup: b, began: time.Now()}, nil
}

func (t *teller) isOver() bool {
	return t.backup.Status.Phase == v1alpha1.BackupCompleted || t.backup.Status.Phase == v1alpha1.BackupFailed
}

// hasBegun reports whether a Pod before this one may have written to the store.
func (t *teller) hasBegun() bool { return t.backup.Status.Progress != nil }

// begins writes down that the store is written to from now on, before it is: hasBegun of the next Pod.
func (t *teller) begins(ctx context.Context) error {
	return t.end(ctx, func(s *v1alpha1.BackupStatus) {
		s.Reason, s.Error, s.Progress = "", "", &v1alpha1.BackupProgress{Percent: "0%"}
	})
}

// open tells why it is not known what came of the backup. If the Job ends so, the operator tells it.
func (t *teller) open(ctx context.Context, why *openError) {
	t.o.Log.Error("it is not known whether the backup is complete; this Pod ends, and the next one checks",
		"error", why)
	if err := t.end(ctx, func(s *v1alpha1.BackupStatus) { s.Error = why.Error() }); err != nil {
		t.o.Log.Warn("cannot write the status of the Backup", "error", err)
	}
}

// progress tells how far it is, at a pace that the API server does not notice. What cannot
// be told is told the next time.
func (t *teller) progress(p backup.Progress) {
	if time.Since(t.told) < often {
		return
	}
	t.told = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), often)
	defer cancel()
	now := progressOf(p, t.began, time.Now())
	if err := t.change(ctx, func(s *v1alpha1.BackupStatus) { s.Progress = now }); err != nil {
		t.o.Log.Warn("cannot write the progress into the status of the Backup", "error", err)
	}
	t.o.Log.Info("the backup makes progress", "bytes", now.Bytes, "totalBytes", now.TotalBytes, "percent", now.Percent)
}

func progressOf(p backup.Progress, began, now time.Time) *v1alpha1.BackupProgress {
	out := &v1alpha1.BackupProgress{Bytes: p.Done, TotalBytes: p.Expected, Percent: "0%"}
	if p.Expected > 0 {
		out.Percent = fmt.Sprintf("%d%%", 100*p.Done/p.Expected)
	}
	if took := now.Sub(began); took >= time.Second {
		out.BytesPerSecond = int64(float64(p.Done) / took.Seconds())
	}
	if out.BytesPerSecond > 0 {
		left := time.Duration(float64(p.Expected-p.Done) / float64(out.BytesPerSecond) * float64(time.Second))
		out.ExpectedEnd = &metav1.Time{Time: now.Add(left)}
	}
	return out
}

// completed says what the backup holds. Which it is, of whom, and where it lies, the operator has
// written down before, and the policy cnmsql-backup-status lets no Job write.
func (t *teller) completed(ctx context.Context, m *backup.Manifest) error {
	sum, err := m.Checksum()
	if err != nil {
		return err
	}
	return t.end(ctx, func(s *v1alpha1.BackupStatus) {
		s.Phase, s.Reason, s.Error = v1alpha1.BackupCompleted, "", ""
		s.ServerVersion, s.SHA256 = m.Server, sum
		s.BeginGTID, s.EndGTID = bounded(m.BeginGTID.String()), bounded(m.EndGTID.String())
		s.Size, s.StoredSize, s.EncryptedTo = m.RawSize, m.StoredSize, m.Recipient
		if s.StoppedAt = since(m.End); s.StartedAt == nil { // the operator's clock counts, see backup.Taken.Closes
			s.StartedAt = &metav1.Time{Time: m.Begin}
		}
		s.Progress = &v1alpha1.BackupProgress{Bytes: m.RawSize, TotalBytes: m.RawSize, Percent: "100%"}
		if took := m.End.Sub(m.Begin).Seconds(); took > 0 {
			s.Progress.BytesPerSecond = int64(float64(m.RawSize) / took)
		}
	})
}

func (t *teller) failed(ctx context.Context, why error) error {
	return t.end(ctx, func(s *v1alpha1.BackupStatus) {
		s.Phase, s.Reason, s.Error = v1alpha1.BackupFailed, string(reasonOf(why)), why.Error()
		s.StoppedAt, s.Progress = &metav1.Time{Time: time.Now()}, nil
	})
}

// since returns the first whole second that is not before a time. A status has no fractions: with them
// cut off, a restore to the moment that is written there would be one to before the backup.
func since(t time.Time) *metav1.Time {
	whole := t.Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return &metav1.Time{Time: whole}
}

// maxSet bounds what a set may take of the Backup object; the manifest has all of it.
const maxSet = 16 << 10

func bounded(set string) string {
	if len(set) > maxSet {
		return set[:maxSet] + "..."
	}
	return set
}

// end writes the last word. The API server may be away for a while.
func (t *teller) end(ctx context.Context, how func(*v1alpha1.BackupStatus)) error {
	ctx, cancel := context.WithTimeout(ctx, lastWord)
	defer cancel()
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		err := t.change(ctx, how)
		if err == nil || client.IgnoreNotFound(err) == nil {
			return nil // a Backup that was deleted wants to know nothing
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("writing what came of the backup: %w", errors.Join(err, ctx.Err()))
		case <-tick.C:
		}
	}
}

// change writes what how changes, and nothing else: the operator writes other fields.
func (t *teller) change(ctx context.Context, how func(*v1alpha1.BackupStatus)) error {
	b := t.backup.DeepCopy()
	how(&b.Status)
	if err := t.o.Kubernetes.Status().Patch(ctx, b, client.MergeFrom(t.backup)); err != nil {
		return err
	}
	t.backup = b
	return nil
}
