package agent_test

import (
	"testing"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

func TestAnOrderForFewerAcknowledgementsThanAnElectionReliesOnIsOfThePast(t *testing.T) {
	promised := &core.Promotion{Epoch: 4, RequiredAcks: 2}
	for _, c := range []struct {
		about string
		p     *core.Promotion
		epoch int64
		acks  int
		want  string
	}{
		{"fewer than is relied on", promised, 4, 1, "StaleOrder"},
		{"as many", promised, 4, 2, ""},
		{"more", promised, 4, 3, ""},
		{"an epoch that has ended", promised, 3, 2, "StaleEpoch"},
		{"an epoch that is not known", promised, 5, 2, "StaleEpoch"},
		{"nobody is promoted", nil, 4, 2, "StaleEpoch"},
	} {
		got := ""
		if no := agent.MayAwait(c.p, c.epoch, c.acks); no != nil {
			got = string(no.Reason)
		}
		if got != c.want {
			t.Errorf("%s: %q", c.about, got)
		}
	}
}

func TestOnlyAnOrderForFewerIsHeldAgainstTheClusterAsItIsNow(t *testing.T) {
	f := &agent.Facts{Acks: 2, AcksEpoch: 4}
	if !f.LowersAcks(4, 1) || f.LowersAcks(4, 2) || f.LowersAcks(4, 3) || f.LowersAcks(5, 1) {
		t.Error("what lowers them is not known")
	}
}
