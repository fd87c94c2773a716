package async

import (
	"fmt"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// TestWhoMayStillAcknowledgeIsNoKnownPosition holds where the primary may run on, cut off from its acknowledgements:
// c-3 acknowledged a commit and lost it, and c-4, which has promised nothing, may yet complete that commit.
func TestWhoMayStillAcknowledgeIsNoKnownPosition(t *testing.T) {
	const uuid = "aaaaaaaa-0000-0000-0000-000000000001"
	at := time.Unix(1000, 0)
	executed, err := gtid.Parse(uuid + ":1-10")
	if err != nil {
		t.Fatal(err)
	}
	holdWith := func(proof core.Proof, promised int64) election {
		o := &core.Observation{Now: at}
		o.Cluster.Durability = core.Durability{Mode: core.DurabilityQuorum}
		o.Cluster.Status.Promotion = &core.Promotion{Instance: "c-1", Epoch: 1, RequiredAcks: 2, LosslessSince: 1}
		o.Instances = []core.Instance{{Name: "c-1"}}
		for n := 2; n <= 4; n++ {
			r := core.Report{Instance: fmt.Sprint("c-", n), State: core.Running, Data: core.DataPopulated,
				VolumeLocked: true, Server: &core.Server{Executed: executed}, NoReceivingBelow: 2, MayLack: n == 3}
			if n == 4 {
				r.NoReceivingBelow = promised
			}
			o.Instances = append(o.Instances, core.Instance{Name: r.Instance, Report: core.Known(r, at, at)})
		}
		o.Cluster.Status.Members = []string{"c-1", "c-2", "c-3", "c-4"}
		b := ballot{o: o}
		b.after(proven{proof: proof}, at, 2)
		return b.elect()
	}
	if e := holdWith(core.ProofQuorumCut, 1); e.refusal != core.RefusalTooFewKnown {
		t.Errorf("c-4 may still acknowledge, and %q wins (%q)", e.winner, e.refusal)
	}
	if e := holdWith(core.ProofQuorumCut, 2); e.winner == "" {
		t.Errorf("c-4 has promised, and nobody wins: %s", e.why)
	}
	if e := holdWith(core.ProofPodTerminated, 1); e.winner == "" {
		t.Errorf("the primary has ended, and nobody wins: %s", e.why)
	}
}
