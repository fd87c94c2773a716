package verify

import (
	"cmp"
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/archive"
)

// unusable are the newer backups that were passed over because something is wrong with them, or
// with the archive behind them. Nothing is wrong with one that holds what a failover lost: it is
// whole, and the restore has all that the Cluster has. One that is only too new for the target
// is not among those that were passed over.
func (f *Facts) unusable() []core.PassedOver {
	return slices.DeleteFunc(slices.Clone(f.Copy.PassedOver), func(p core.PassedOver) bool {
		return p.Reason == archive.BackupNotOnBranch
	})
}

// missNewest fails a verification in which all is sound that was restored: a restore works today,
// and the Cluster has fewer backups than it seems.
func (f *Facts) missNewest(p *Plan) {
	f.noteSound(p)
	f.fail(p, no(core.VerifyPassedOver, "backups newer than %s cannot be used: %s. It was restored in their place, "+
		"with the archive, and its %d tables are sound. Take another backup now, and find out what happened to the "+
		"named ones: who deletes or changes objects in the store, or with which key they were encrypted",
		cmp.Or(p.Record.BackupID, "?"), list(passed(f.unusable())), p.Record.Tables))
}

// passed are backups that were passed over, and why, as list names them.
func passed(all []core.PassedOver) (out []Finding) {
	for _, p := range all {
		out = append(out, Finding{p.Backup, string(p.Reason)})
	}
	return out
}
