package plugin

import (
	"fmt"
	"strings"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
)

// restoreOf is the restore as the instance tells it that restores, or as the status does.
func restoreOf(f *Facts) *v1alpha1.RestoreStatus {
	for _, live := range f.Live {
		if live.Report != nil && live.Report.Restore != nil {
			return observation.RestoreTo(live.Report.Restore)
		}
	}
	return f.Cluster.Status.Restore
}

// percentOf is how far an instance is that restores: the backup, or what is copied of a running server, and
// then the archive.
func percentOf(r *core.Restore) string {
	amount := r.Files
	if r.Stage != core.RestoreFiles && r.Replay.Of > 0 {
		amount = r.Replay
	}
	return fmt.Sprintf("%d%%", amount.Percent())
}

// restore tells how far a restore is, and which backups it could not use. Once it is
// complete, the condition says that.
func (p page) restore(r *v1alpha1.RestoreStatus) {
	if r == nil {
		return
	}
	if len(r.LackingTables) > 0 {
		p.line("LACKS ROWS", "of tables that were not InnoDB when the data were taken: %s",
			strings.Join(r.LackingTables, ", "))
	}
	if r.Stage == v1alpha1.RestoreCompleted {
		return
	}
	from := "backup " + r.BackupID
	if r.Source != "" {
		from = "the server " + r.Source
	}
	text := fmt.Sprintf("of %s: %s", from, strings.ToLower(r.Stage))
	if r.ReachedTime != nil {
		text += "; holds what was committed until " + r.ReachedTime.UTC().Format(time.RFC3339)
	}
	p.line("Restore", "%s", text)
	if b := r.Backup; b != nil && (r.Stage == string(core.RestoreFiles) || r.Stage == string(core.RestoreCopy)) {
		p.line("", "%s", p.filesText(b))
	}
	if a := r.Archive; a != nil && r.Stage == string(core.RestoreReplay) {
		p.line("", "%s", p.replayText(a))
	}
	for _, passed := range r.PassedOver {
		p.line("", "PASSED OVER the newer backup %s: %s", passed.BackupID, passed.Reason)
	}
}

func (p page) filesText(b *v1alpha1.BackupProgress) string {
	text := fmt.Sprintf("the files: %s, %s of %s", b.Percent, sized(b.Bytes), sized(b.TotalBytes))
	if b.BytesPerSecond > 0 {
		text += fmt.Sprintf(", %s/s", sized(b.BytesPerSecond))
	}
	return text + endsText(b.ExpectedEnd, p.now)
}

func (p page) replayText(a *v1alpha1.ReplayProgress) string {
	text := fmt.Sprintf("the archive: %s, %d of %d transactions, %s of %s", a.Percent, a.Transactions,
		a.TotalTransactions, sized(a.Bytes), sized(a.TotalBytes))
	if a.LastPart != "" {
		text += ", part " + a.LastPart
	}
	if a.TargetTime != nil {
		text += ", of what was committed until " + a.TargetTime.UTC().Format(time.RFC3339)
	}
	if a.TransactionsPerSecond > 0 {
		text += fmt.Sprintf(", %d/s", a.TransactionsPerSecond)
	}
	return text + endsText(a.ExpectedEnd, p.now)
}
