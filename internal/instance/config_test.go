package instance

import (
	"testing"

	"cnmsql.co/api/v1alpha1"
)

// An election counts on what a replica acknowledged for as long as the promise of the promotion stands: a mysqld that
// is started again meanwhile must not drop it, whatever the spec asks for by then.
func TestRelayLogsAreKeptWhileThePromotionIsLossless(t *testing.T) {
	asks := func(mode string, lossless int64) *v1alpha1.Cluster {
		c := &v1alpha1.Cluster{}
		c.Spec.MySQL.SemiSync = &v1alpha1.SemiSyncSpec{Enabled: mode != "", DataDurability: mode}
		if lossless >= 0 {
			c.Status.Promotion = &v1alpha1.PromotionStatus{LosslessSince: lossless}
		}
		return c
	}
	for name, k := range map[string]struct {
		cluster *v1alpha1.Cluster
		kept    bool
	}{
		"quorum":                                 {asks(v1alpha1.DurabilityQuorum, 3), true},
		"quorum, and no promotion yet":           {asks(v1alpha1.DurabilityQuorum, -1), true},
		"switched off, and the promise stands":   {asks("", 3), true},
		"switched off, and it was taken back":    {asks("", 0), false},
		"switched off, and there is none":        {asks("", -1), false},
		"no semi-synchronous replication at all": {&v1alpha1.Cluster{}, false},
	} {
		m := newManager(Options{}.withDefaults())
		m.configurer.opt.Peer = func(string) string { return "db-1" }
		m.record = &recordFile{}
		if kept := m.configurer.config(k.cluster).KeepsRelayLogs; kept != k.kept {
			t.Errorf("%s: relay logs are kept: %v", name, kept)
		}
	}
}
