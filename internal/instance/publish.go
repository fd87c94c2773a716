package instance

import (
	"context"
	"time"

	"cnmsql.co/internal/core/agent"
)

// keepPublished writes this instance into the Cluster's status as its primary, if
// the operator has not done so within a second: two who write the status at once
// only hold each other up. It goes on beside the worker: the API server may be away.
func (m *manager) keepPublished(ctx context.Context) {
	retry := time.NewTicker(time.Second)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.pubWake:
		case <-retry.C:
		}
		if !m.publishes(m.facts()) {
			continue
		}
		if err := m.publishPrimary(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn("publishing the primary; it is tried again", "error", err)
		}
	}
}

// publishes: it is writable, permitted, and not yet published.
func (m *manager) publishes(f *agent.Facts) bool {
	return f.WritableEpoch != 0 && f.Permitted() && f.Cluster.Epoch == f.WritableEpoch &&
		f.Cluster.CurrentPrimary != f.Me
}

// publishPrimary reads the Cluster again, so that nothing is written by the hand
// of an instance that was replaced meanwhile.
func (m *manager) publishPrimary(ctx context.Context) error {
	c, err := m.kube.Cluster(ctx)
	if err != nil {
		return err
	}
	m.setCluster(c)
	if !m.publishes(m.facts()) {
		return nil
	}
	return m.kube.PublishPrimary(ctx, m.opt.Instance, c.ResourceVersion, time.Now())
}

// keepCertificates has mysqld read its certificates again when they were rotated.
func (m *manager) keepCertificates(ctx context.Context) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	d := m.opt.Dirs
	last := ""
	if !m.inherited { // else mysqld may have older ones
		last, _ = stampOf(d.ca(), d.cert(), d.key())
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := stampOf(d.ca(), d.cert(), d.key())
		if err != nil || now == last || !m.answeredWithin(2*time.Second) {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		err = m.metrics.ReloadTLS(limited)
		cancel()
		if err != nil {
			m.log.Error("reloading mysqld's certificates; it is tried again", "error", err)
			continue
		}
		m.log.Info("mysqld has reloaded its certificates")
		last = now
	}
}
