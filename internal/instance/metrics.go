package instance

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/exporter"
	"cnmsql.co/internal/mysql"
)

// scrapesMost is how many may ask mysqld at once: a pair of Prometheus servers, and a human.
const scrapesMost = 4

// scraper makes metrics of the report, and of what mysqld says when it is asked.
type scraper struct {
	log *slog.Logger
	by  scraped
	// asks is mysqld, on a connection of its own.
	asks func() *mysql.Server
}

// scraped is what a scraper asks of its manager.
type scraped interface {
	// snapshot is the report, and what is closed when it changes.
	snapshot(now time.Time) (control.Snapshot, <-chan struct{})
}

func newScraper(m *manager) *scraper {
	return &scraper{log: m.log, by: m, asks: func() *mysql.Server { return m.metrics }}
}

// handler serves what Prometheus scrapes. The counters of the server are
// asked for at each scrape, on a connection of their own.
func (s *scraper) handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		s)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesMost}))
	return mux
}

// Describe says nothing: what there is depends on the server's state.
func (s *scraper) Describe(chan<- *prometheus.Desc) {}

// Collect makes the metrics of one scrape.
func (s *scraper) Collect(out chan<- prometheus.Metric) {
	snap, _ := s.by.snapshot(time.Now())
	g := gauges{out}
	g.report(snap.Report)
	g.flag("mysql_up", "Whether mysqld answers.", snap.Report.Server != nil)
	if snap.Report.Server == nil {
		return
	}
	g.server(snap.Report.Server)
	if snap.Report.Server.SemiSync.LocksAccounts {
		return // the question would hang, as every login does
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	status, variables, err := s.asks().Pairs(ctx)
	if err != nil {
		s.log.Debug("cannot read metrics from mysqld", "error", err)
		return
	}
	put := func(m prometheus.Metric) { out <- m }
	exporter.Status(status, put)
	exporter.Variables(variables, put)
	if view := snap.Report.Server.Group; view != nil {
		s.group(ctx, g, view)
	}
}

type gauges struct{ out chan<- prometheus.Metric }

func (g gauges) put(name, help string, value float64) {
	g.out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, value)
}

func (g gauges) flag(name, help string, value bool) {
	if value {
		g.put(name, help, 1)
		return
	}
	g.put(name, help, 0)
}

func (g gauges) report(r core.Report) {
	g.flag("cnmsql_up", "Whether mysqld answers.", r.Server != nil)
	g.flag("cnmsql_primary", "Whether this instance is writable.", r.TakesWrites())
	g.put("cnmsql_writable_epoch", "The epoch in which this instance is writable, 0 if it is not.",
		float64(r.WritableEpoch))
	g.put("cnmsql_seen_epoch", "The highest epoch that this instance has seen.", float64(r.SeenEpoch))
	g.put("cnmsql_mysqld_restarts", "Starts of mysqld after the first on the data that it has.", float64(r.Restarts))
	g.flag("cnmsql_diverged", "Whether this instance holds transactions that the primary lacks.", !r.Errant.IsEmpty())
	g.flag("cnmsql_needs_reclone", "Whether the primary has purged what this instance lacks.", r.NeedsReclone)
	g.out <- prometheus.MustNewConstMetric(prometheus.NewDesc("cnmsql_state", "The state of this instance, in a label.",
		[]string{"state", "reason"}, nil), prometheus.GaugeValue, 1, string(r.State), string(r.Reason))
	if room := r.Room; room != nil {
		g.put("cnmsql_volume_free_bytes", "How much of the volume that holds the data is free.", float64(room.Free))
		g.put("cnmsql_volume_size_bytes", "How large that volume is.", float64(room.Size))
	}
	if a := r.Archive; a != nil {
		g.flag("cnmsql_archive_failing", "Whether binary logs cannot be archived.", a.Failure != "")
		g.flag("cnmsql_archive_behind", "Whether what is not archived is older than targetRPOSeconds allows.", a.Behind)
		g.put("cnmsql_archive_rpo_seconds",
			"How old the oldest transaction is that could be archived and is not.", a.RPO)
		g.pending(a)
	}
	if is := r.Restore; is != nil {
		g.put("cnmsql_restore_bytes", "How much of the backup is restored.", float64(is.Files.Done))
		g.put("cnmsql_restore_total_bytes", "How much the backup is.", float64(is.Files.Of))
		g.put("cnmsql_restore_replayed_transactions", "How much of the archive is replayed.", float64(is.Replay.Done))
		g.put("cnmsql_restore_replay_transactions", "How much of the archive is to be.", float64(is.Replay.Of))
		g.put("cnmsql_restore_passed_over_backups", "How many newer backups could not be used.",
			float64(len(is.PassedOver)))
	}
	if r.Clone != nil {
		g.put("cnmsql_clone_percent", "How much of the donor's data is copied.", float64(r.Clone.Percent))
	}
}

// pending tells nothing while it is not known: none would be a lie while all of them wait.
func (g gauges) pending(a *core.Archive) {
	if a.PendingFiles == nil || a.PendingBytes == nil {
		return
	}
	g.put("cnmsql_archive_pending_files", "How many binary logs are not archived as a whole.",
		float64(*a.PendingFiles))
	g.put("cnmsql_archive_pending_bytes", "How much of them is not archived.", float64(*a.PendingBytes))
}

func (g gauges) server(s *core.Server) {
	g.put("cnmsql_gtid_executed_transactions", "How many transactions are executed.", float64(s.Executed.Count()))
	g.flag("cnmsql_semisync_source_active", "Whether commits wait for acknowledgements now.", s.SemiSync.SourceActive)
	g.put("cnmsql_semisync_acks", "How many acknowledgements each commit waits for.", float64(s.SemiSync.Acks))
	g.put("cnmsql_semisync_clients", "How many semi-synchronous replicas are attached.", float64(s.SemiSync.Clients))
	g.put("cnmsql_semisync_wait_sessions", "How many sessions wait for acknowledgements.",
		float64(s.SemiSync.WaitSessions))
	if r := s.Replication; r != nil {
		g.flag("cnmsql_replication_io_running", "Whether this replica receives.", r.IORunning)
		g.flag("cnmsql_replication_sql_running", "Whether this replica applies.", r.SQLRunning)
	}
	lag, follows := s.Lag()
	if r := s.Replication; r != nil {
		exporter.Replica(exporter.Channel{Host: r.SourceHost, UUID: r.SourceUUID, Receives: r.IORunning,
			Applies: r.SQLRunning, Lag: lag, LagKnown: follows}, func(m prometheus.Metric) { g.out <- m })
	}
	if follows {
		g.put("cnmsql_replication_lag_seconds", "How far it is behind the primary: the age of the transaction that "+
			"it applies, or, of a replica, of the last one that it received, whichever is greater.", lag)
	}
}
