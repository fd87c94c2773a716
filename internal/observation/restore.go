package observation

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// RestoreTo returns what a Cluster's status says of a restore, which must not be nil.
func RestoreTo(r *core.Restore) *v1alpha1.RestoreStatus {
	out := &v1alpha1.RestoreStatus{Stage: string(r.Stage), BackupID: r.Backup, Source: r.Source,
		ReachedTime: timeTo(r.Reached), LackingTables: r.Lacking}
	for _, p := range r.PassedOver {
		out.PassedOver = append(out.PassedOver, v1alpha1.PassedOverBackup{BackupID: p.Backup, Reason: string(p.Reason)})
	}
	out.Backup = &v1alpha1.BackupProgress{Bytes: r.Files.Done, TotalBytes: r.Files.Of, Percent: percent(r.Files),
		BytesPerSecond: r.Files.PerSecond, ExpectedEnd: secondTo(r.Files.Ends)}
	if r.Stage != core.RestoreFiles && r.Replay.Of > 0 {
		out.Archive = &v1alpha1.ReplayProgress{Transactions: r.Replay.Done, TotalTransactions: r.Replay.Of,
			Bytes: r.Bytes, TotalBytes: r.TotalBytes, Percent: percent(r.Replay),
			TransactionsPerSecond: r.Replay.PerSecond,
			LastPart:              r.Part, TargetTime: timeTo(r.Until), ExpectedEnd: secondTo(r.Replay.Ends)}
	}
	return out
}

// RestoreFrom reads a restore out of a Cluster's status, which must not be nil.
func RestoreFrom(s *v1alpha1.RestoreStatus) *core.Restore {
	out := &core.Restore{Stage: core.RestoreStage(s.Stage), Backup: s.BackupID, Source: s.Source,
		Reached: timeFrom(s.ReachedTime), Lacking: s.LackingTables}
	for _, p := range s.PassedOver {
		out.PassedOver = append(out.PassedOver, core.PassedOver{Backup: p.BackupID, Reason: core.Reason(p.Reason)})
	}
	if b := s.Backup; b != nil {
		out.Files = core.Amount{Done: b.Bytes, Of: b.TotalBytes, PerSecond: b.BytesPerSecond,
			Ends: secondFrom(b.ExpectedEnd)}
	}
	if a := s.Archive; a != nil {
		out.Replay = core.Amount{Done: a.Transactions, Of: a.TotalTransactions, PerSecond: a.TransactionsPerSecond,
			Ends: secondFrom(a.ExpectedEnd)}
		out.Bytes, out.TotalBytes, out.Part, out.Until = a.Bytes, a.TotalBytes, a.LastPart, timeFrom(a.TargetTime)
	}
	return out
}

// Unforeseen takes back when a restore was expected to end: it does not go on.
func Unforeseen(s *v1alpha1.RestoreStatus) {
	if s.Backup != nil {
		s.Backup.ExpectedEnd = nil
	}
	if s.Archive != nil {
		s.Archive.ExpectedEnd = nil
	}
}

func percent(a core.Amount) string { return strconv.Itoa(a.Percent()) + "%" }

func secondTo(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}

func secondFrom(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
