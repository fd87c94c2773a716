package instance

import (
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"cnmsql.co/internal/core"
)

// gauged is a report of which the gauges are made.
type gauged core.Report

func (gauged) Describe(chan<- *prometheus.Desc) {}

func (r gauged) Collect(out chan<- prometheus.Metric) { gauges{out}.report(core.Report(r)) }

// gaugesOf are those of a report whose names begin so, without that beginning.
func gaugesOf(t *testing.T, r core.Report, prefix string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	must(t, registry.Register(gauged(r)))
	families, err := registry.Gather()
	must(t, err)
	out := map[string]float64{}
	for _, f := range families {
		if name, is := strings.CutPrefix(f.GetName(), prefix); is {
			out[name] = f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return out
}

func TestTheGaugesSayHowTheArchiveIs(t *testing.T) {
	quiet := map[string]float64{"failing": 0, "behind": 0, "rpo_seconds": 0}
	for name, tc := range map[string]struct {
		is   core.Archive
		want map[string]float64
	}{
		"all is archived": {core.Archive{File: "binlog.000007", GTIDs: "a:1-5", Place: "s3://b"}, nil},
		"it fails":        {core.Archive{Failure: "StoreFull"}, map[string]float64{"failing": 1}},
		"a gap, which only the operator knows to be closed": {core.Archive{Missing: "a:1-5"}, nil},
		"late": {core.Archive{RPO: 22.5, Behind: true},
			map[string]float64{"behind": 1, "rpo_seconds": 22.5}},
		"what waits is not known": {core.Archive{RPO: 3}, map[string]float64{"rpo_seconds": 3}},
		"nothing waits": {core.Archive{PendingFiles: new(0), PendingBytes: new(int64(0))},
			map[string]float64{"pending_files": 0, "pending_bytes": 0}},
		"some waits": {core.Archive{RPO: 3, PendingFiles: new(2), PendingBytes: new(int64(4096))},
			map[string]float64{"rpo_seconds": 3, "pending_files": 2, "pending_bytes": 4096}},
	} {
		want := maps.Clone(quiet)
		maps.Copy(want, tc.want)
		if got := gaugesOf(t, core.Report{Archive: &tc.is}, "cnmsql_archive_"); !maps.Equal(got, want) {
			t.Errorf("%s:\ngot  %v\nwant %v", name, got, want)
		}
	}
	if got := gaugesOf(t, core.Report{}, "cnmsql_archive_"); len(got) > 0 {
		t.Errorf("who archives nothing has gauges of it: %v", got)
	}
}

func TestTheGaugesSayHowFarARestoreIs(t *testing.T) {
	for name, tc := range map[string]struct {
		is   core.Restore
		want map[string]float64
	}{
		"it only begins": {core.Restore{Backup: "b1", Stage: core.RestoreFiles},
			map[string]float64{"bytes": 0, "total_bytes": 0, "replayed_transactions": 0, "replay_transactions": 0,
				"passed_over_backups": 0}},
		"all at once": {core.Restore{Backup: "b1", Stage: core.RestoreReplay, Files: core.Amount{Done: 100, Of: 200},
			Replay: core.Amount{Done: 3, Of: 7}, Bytes: 11, TotalBytes: 13,
			PassedOver: []core.PassedOver{{Backup: "b3"}, {Backup: "b2"}}},
			map[string]float64{"bytes": 100, "total_bytes": 200, "replayed_transactions": 3, "replay_transactions": 7,
				"passed_over_backups": 2}},
	} {
		if got := gaugesOf(t, core.Report{Restore: &tc.is}, "cnmsql_restore_"); !maps.Equal(got, tc.want) {
			t.Errorf("%s:\ngot  %v\nwant %v", name, got, tc.want)
		}
	}
	if got := gaugesOf(t, core.Report{}, "cnmsql_restore_"); len(got) > 0 {
		t.Errorf("who was not restored has gauges of it: %v", got)
	}
}
