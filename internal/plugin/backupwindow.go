package plugin

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// Window is to which moments a Cluster can be restored, as far as Kubernetes knows: older
// backups may lie in the object store, whose Backup objects were deleted.
type Window struct {
	// From and To bound it; both are nil when only the moments of single backups, or none
	// at all, can be restored.
	From *time.Time `json:"from,omitempty"`
	To   *time.Time `json:"to,omitempty"`
	// Text says it, and what it does not hold.
	Text string `json:"text"`
}

// holds reports whether a moment is in it. A window without bounds holds none.
func (w Window) holds(t time.Time) bool {
	return w.From != nil && !t.Before(*w.From) && !t.After(*w.To)
}

// until is up to when the archive is known to be complete; nil when nothing was archived.
func (a *Archive) until() *time.Time {
	if a.CompleteUntil != nil {
		return a.CompleteUntil
	}
	return a.LastTime
}

// windowOf begins with the oldest backup on which the archive can be replayed, known to Kubernetes or seen in the store
// by the last Job that looked what has expired, and ends where the archive is complete no longer.
func windowOf(f BackupFacts, a *Archive) Window {
	oldest := oldestInStore(f, a.CompleteSince)
	if kept := keptSince(f, a.CompleteSince); kept != nil && oldest != nil && kept.Before(*oldest) {
		oldest = kept
	}
	switch {
	case oldest == nil && !hasCompleted(f.Cluster, f.Backups) && f.Cluster != nil && !hasStore(f.Cluster):
		return Window{Text: "none: there is no Completed Backup, and nowhere to put one; add spec.backup.objectStore"}
	case oldest == nil && !hasCompleted(f.Cluster, f.Backups) && lastOfEarlier(f.Cluster, f.Backups) != nil:
		return Window{Text: "none: all Completed Backups are of an earlier Cluster of this name, and hold nothing of " +
			"this one; take one, to a path of its own: " + backupCommandFor(f.Namespace, f.Name)}
	case oldest == nil && !hasCompleted(f.Cluster, f.Backups):
		return Window{Text: "none that Kubernetes knows of: there is no Completed Backup; take one: " +
			backupCommandFor(f.Namespace, f.Name)}
	case f.Cluster == nil:
		return Window{Text: "only the moments of the Backups are known: the Cluster is gone, and with it how far its " +
			"archive went. " +
			"The archive itself is still in the store"}
	case !a.Enabled:
		return Window{Text: "only the moments of the Backups: spec.backup.continuousArchiving is not enabled"}
	case a.LastTime == nil:
		return Window{Text: "only the moments of the Backups: nothing was archived yet"}
	case oldest == nil && a.CompleteSince != nil && oldestInStore(f, nil) != nil:
		return Window{Text: fmt.Sprintf("only the moments of the Backups, as far as Kubernetes knows: the archive "+
			"lacks nothing since %s, and no Completed Backup that lies there was begun later; take one: %s",
			stamp(*a.CompleteSince), backupCommandFor(f.Namespace, f.Name))}
	case oldest == nil:
		return Window{Text: "only the moments of the Backups: none of them lies where the archive does; take one: " +
			backupCommandFor(f.Namespace, f.Name)}
	case a.until().Before(*oldest):
		return Window{Text: "only the moments of the Backups: nothing was archived since " + stamp(*a.until()) +
			f.perhapsLater()}
	}
	w := Window{From: oldest, To: a.until(),
		Text: fmt.Sprintf("any moment from %s to %s", stamp(*oldest), stamp(*a.until())) + f.perhapsLater()}
	if a.Missing != "" && a.CompleteSince == nil { // otherwise the window begins after the gap
		w.Text += fmt.Sprintf(", EXCEPT past the gap in the archive (%s): what comes after it needs a Backup that "+
			"was taken after it", a.Missing)
	}
	return w
}

// perhapsLater says that the window may end later than Kubernetes knows; "" when it does not.
func (f BackupFacts) perhapsLater() string {
	if f.Unasked == "" {
		return ""
	}
	return ", or later: only the primary knows until when the archive is complete, and " + f.Unasked
}

// oldestInStore is when the oldest Completed Backup ended that lies where the archive does, and was not
// begun before a moment, if there is one.
func oldestInStore(f BackupFacts, since *time.Time) *time.Time {
	for i := range f.Backups {
		b := &f.Backups[i]
		if at := b.Status.StartedAt; since != nil && (at == nil || at.Time.Before(*since)) {
			continue
		}
		if holds(f.Cluster, b) && b.Status.StoppedAt != nil && liesWithArchive(f.Cluster, b) {
			return endOf(b)
		}
	}
	return nil
}

// keptSince is the earliest moment that can be restored, as the last Job says that looked through the store where the
// archive lies. Its backup is known to have begun since a moment, if there is one, where it ended longer after that
// than a Job may run.
func keptSince(f BackupFacts, since *time.Time) *time.Time {
	var last *v1alpha1.BackupRetention
	for i := range f.Backups {
		b := &f.Backups[i]
		is := b.Status.Retention
		if is != nil && holds(f.Cluster, b) && liesWithArchive(f.Cluster, b) &&
			(last == nil || last.RanAt.Before(&is.RanAt)) {
			last = is
		}
	}
	if last == nil || last.KeptSince == nil ||
		since != nil && last.KeptSince.Sub(*since) < resources.BackupDeadline {
		return nil
	}
	return &last.KeptSince.Time
}

// endOf is when a Completed Backup ended. StoppedAt is by the clock of its Job: where that says that it ended
// before it began, it was behind, and the operator's word that it is complete counts, which came later.
func endOf(b *v1alpha1.Backup) *time.Time {
	began := b.CreationTimestamp.Time
	if s := b.Status.StartedAt; s != nil && s.After(began) {
		began = s.Time
	}
	if !b.Status.StoppedAt.Time.Before(began) {
		return &b.Status.StoppedAt.Time
	}
	is := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionBackupCompleted)
	if is != nil && is.LastTransitionTime.After(began) {
		began = is.LastTransitionTime.Time
	}
	return &began
}

// liesWithArchive reports whether a Backup is in the object store that the Cluster names.
func liesWithArchive(c *v1alpha1.Cluster, b *v1alpha1.Backup) bool {
	return c != nil && hasStore(c) && resources.IsSameStore(b.Status.ObjectStore, c.Spec.Backup.ObjectStore)
}

// holds reports whether a Backup holds data of the Cluster that can be restored. One of an earlier
// Cluster of the name can be restored, and holds nothing of this one.
func holds(c *v1alpha1.Cluster, b *v1alpha1.Backup) bool {
	return b.IsRestorable() && !b.IsOfEarlier(c)
}

func hasCompleted(c *v1alpha1.Cluster, all []v1alpha1.Backup) bool {
	return lastCompleted(c, all) != nil
}

// lastCompleted is the newest Completed one of the Cluster; nil when there is none.
func lastCompleted(c *v1alpha1.Cluster, all []v1alpha1.Backup) *v1alpha1.Backup {
	for i := len(all) - 1; i >= 0; i-- {
		if holds(c, &all[i]) {
			return &all[i]
		}
	}
	return nil
}

// lastOfEarlier is the newest that can be restored of an earlier Cluster of the name; nil when
// there is none.
func lastOfEarlier(c *v1alpha1.Cluster, all []v1alpha1.Backup) *v1alpha1.Backup {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].IsRestorable() && all[i].IsOfEarlier(c) {
			return &all[i]
		}
	}
	return nil
}

func backupCommandFor(namespace, cluster string) string {
	return fmt.Sprintf("kubectl cnmsql backup %s -n %s", cluster, namespace)
}
