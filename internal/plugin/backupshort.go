package plugin

import (
	"fmt"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// InShort is what the status says of backups. It is Kubernetes' word, and the primary's: the
// object store is not looked at.
type InShort struct {
	// Store is where they go; empty when the Cluster names no object store.
	Store string `json:"store,omitempty"`
	// Last is the newest Completed Backup, LastEnded when it ended.
	Last      string     `json:"lastCompleted,omitempty"`
	LastEnded *time.Time `json:"lastCompletedEnded,omitempty"`
	Archive   Archive    `json:"archive"`
	// Earlier is the newest of an earlier Cluster of the name, where this one has none.
	Earlier string `json:"ofEarlierCluster,omitempty"`
	// Problem is why Backups are not known.
	Problem string `json:"problem,omitempty"`
}

func backupsInShort(f *Facts) *InShort {
	var said *core.Archive
	if r := f.live(f.holder()); r != nil {
		said = r.Archive
	}
	out := &InShort{Archive: archiveOf(f.Cluster, said), Problem: f.BackupsProblem}
	if hasStore(f.Cluster) {
		out.Store = resources.StorePath(f.Cluster.Spec.Backup.ObjectStore, f.Cluster.Name)
	}
	if last := lastCompleted(f.Cluster, f.Backups); last != nil {
		out.Last, out.LastEnded = last.Name, coarse(last.Status.StoppedAt)
	} else if other := lastOfEarlier(f.Cluster, f.Backups); other != nil {
		out.Earlier = other.Name
	}
	return out
}

func (p page) inShort(r Report) string {
	b := r.Backups
	var text string
	switch {
	case b.Last != "" && b.LastEnded != nil:
		text = fmt.Sprintf("the last, %s, ended %s ago", b.Last, ago(p.now, b.LastEnded))
	case b.Last != "":
		text = "the last is " + b.Last
	case b.Store == "":
		return "none: spec.backup names no object store"
	case b.Problem != "":
		text = "not known: " + b.Problem
	case b.Earlier != "":
		text = fmt.Sprintf("NONE OF THIS CLUSTER: %s is of an earlier Cluster of this name; take one: %s", b.Earlier,
			backupCommandFor(r.Namespace, r.Name))
	default:
		text = "NONE COMPLETED, take one: " + backupCommandFor(r.Namespace, r.Name)
	}
	return text + "; archive: " + p.archiveShort(b.Archive)
}
