package instance

import (
	"context"
	"log/slog"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core/agent"
)

// viewAfter is what the manager goes by after it was told the next view; the mutex is held.
// What was seen of another Cluster says nothing about this one.
func (m *manager) viewAfter(s *clusterState, c *v1alpha1.Cluster, next *agent.Cluster) *agent.Cluster {
	if s.latestOf != c.UID {
		s.latestOf, s.latest = c.UID, agent.Latest{}
	}
	if m.record != nil {
		if r := m.record.get(); r.ClusterUID == string(c.UID) {
			s.latest.Recall(max(r.ViewEpoch, r.WasPrimaryEpoch))
		}
	}
	wasPast := s.latest.Past
	v := s.latest.Take(s.view, next)
	if s.latest.Past && !wasPast {
		m.log.Error("the Cluster's status is older than one that this instance has seen; the manager ignores it",
			"epoch", next.Epoch,
			"seen", s.latest.Epoch)
	}
	return v
}

// keepLatest keeps on the volume how far the status was seen to get. The volume may stall,
// and whoever takes a view does not wait for it: a primary has it on the volume before it
// accepts a write, a replica before it receives, and everybody within a second. It also keeps room
// there for what is promised next, which nobody else does once the manager has begun.
func (m *manager) keepLatest(ctx context.Context) {
	tick := newTicker(time.Second)
	defer tick.Stop()
	latest := lasting{log: m.log, what: "record the epoch of the Cluster's status on the volume"}
	room := lasting{log: m.log, what: "reserve space on the volume for the records of the manager"}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.again()
		}
		latest.note(m.rememberLatest())
		if record := get(m, func(*state) *recordFile { return m.record }); record != nil {
			room.note(record.keepRoom())
		}
	}
}

// lasting tells of what fails again and again once, and of its end.
type lasting struct {
	log    *slog.Logger
	what   string
	failed bool
}

func (l *lasting) note(err error) {
	if err != nil && !l.failed {
		l.log.Warn("cannot "+l.what+"; the manager tries again", "error", err)
	}
	if err == nil && l.failed {
		l.log.Info("can " + l.what + " again")
	}
	l.failed = err != nil
}

func (m *manager) rememberLatest() error {
	m.mu.Lock()
	record, uid, latest := m.record, string(m.st.cluster.latestOf), m.st.cluster.latest
	m.mu.Unlock()
	if record == nil {
		return nil
	}
	if r := record.get(); r.ClusterUID != uid || latest.IsKept(r.ViewEpoch) {
		return nil
	}
	return record.change(func(r *volumeRecord) {
		if r.ClusterUID == uid {
			r.ViewEpoch = max(r.ViewEpoch, latest.Epoch)
		}
	})
}
