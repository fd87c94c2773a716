//go:build e2e

package e2e

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// onlyOneReplica: every commit waits for it.
const onlyOneReplica = `
  instances: 2
  maxStopDelay: 20
  storage: {size: 1Gi}
  mysql:
    semiSync: {enabled: true, dataDurability: quorum}
`

// TestOnlyReplicaLosesItsVolume: clients go on writing, a commit waits for the replica,
// and the copy of the data that the replica needs waits for the commit. The primary is
// closed for it and opens again, and no acknowledged write is lost.
func TestOnlyReplicaLosesItsVolume(t *testing.T) {
	onlyInAll(t)
	w := newWorld(t, "give")
	w.apply(onlyOneReplica)
	w.healthy(3 * time.Minute)
	w.durable(time.Minute)
	primary := w.primary()
	load := w.startWriting()
	load.ackedAfter(time.Now(), time.Minute)

	began := time.Now()
	w.loseVolume(w.replica())
	w.healthy(5 * time.Minute)
	w.eventSays(string(core.ReasonGivesData))
	t.Logf("healthy after %s; a write is acknowledged %s later", time.Since(began),
		load.ackedAfter(time.Now(), time.Minute))
	if now := w.primary(); now != primary {
		t.Errorf("%s is primary now, not %s", now, primary)
	}
	w.durable(time.Minute)
	load.stopAndLoseNothing()
}
