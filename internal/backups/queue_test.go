package backups

import (
	"context"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// counted counts lists.
type counted struct {
	client.Reader
	lists int
}

func (c *counted) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	c.lists++
	return c.Reader.List(ctx, list, o...)
}

// unlisted is a cache that has no lists yet.
type unlisted struct{ client.Client }

func (unlisted) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// The Backups of one namespace that wait must not hold up those of all others.
func TestWhoWaitsAsksTheCacheAndWritesNothingTwice(t *testing.T) {
	running, idle := aBackup("other"), aCluster()
	running.UID, running.Status.Phase = "another", v1alpha1.BackupRunning
	idle.Status.InstancesReported = nil
	for reason, objs := range map[core.Reason][]client.Object{
		core.BackupOtherRuns: {running, aCluster()}, core.BackupNoDonor: {idle},
	} {
		w := newBackupWorld(t, append(objs, aBackup("b"), storeSecret, authority(t))...)
		live := &counted{Reader: w}
		w.r.Live = live
		w.is(w.looks("b"), v1alpha1.BackupPending, reason)
		wrote := slices.Clone(w.Writes)
		w.Clock = w.Clock.Add(lookAgain)
		w.is(w.looks("b"), v1alpha1.BackupPending, reason)
		if live.lists > 0 || !slices.Equal(w.Writes, wrote) {
			t.Errorf("%s: the API server listed %d times, and the second look wrote %q", reason, live.lists,
				w.Writes[len(wrote):])
		}
	}
}

// The cache does not tell that nobody runs.
func TestABackupBeginsOnlyIfTheAPIServerKnowsNoOtherThatRuns(t *testing.T) {
	running := aBackup("other")
	running.UID, running.Status.Phase = "another", v1alpha1.BackupRunning
	w := newBackupWorld(t, running, aBackup("b"), aCluster(), storeSecret, authority(t))
	w.r.Client = unlisted{w}
	w.is(w.looks("b"), v1alpha1.BackupPending, core.BackupOtherRuns, "the Backup other")
}
