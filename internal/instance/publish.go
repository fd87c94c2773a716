package instance

import (
	"context"
	"log/slog"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core/agent"
)

// publisher writes this instance into the Cluster's status as its primary.
type publisher struct {
	kube func() Kubernetes
	me   string
	log  *slog.Logger
	by   published
	// wake has it look now.
	wake chan struct{}
}

// published is what a publisher asks of its manager.
type published interface {
	facts() *agent.Facts
	// reread reads the Cluster from the API server, and goes by it unless a newer view came meanwhile.
	reread(ctx context.Context) (c *v1alpha1.Cluster, taken bool, err error)
}

func newPublisher(m *manager) *publisher {
	return &publisher{kube: func() Kubernetes { return m.kube }, me: m.opt.Instance, log: m.log, by: m,
		wake: make(chan struct{}, 1)}
}

// keepPublished writes this instance into the Cluster's status as its primary, if
// the operator has not done so within a second: two who write the status at once
// only hold each other up. It goes on beside the worker: the API server may be away.
func (p *publisher) keepPublished(ctx context.Context) {
	retry := newTicker(agent.PublishRetry)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-retry.C:
			retry.again()
		}
		if !p.by.facts().Publishes() {
			continue
		}
		if err := p.publishPrimary(ctx); err != nil && ctx.Err() == nil {
			p.log.Warn("cannot write status.currentPrimary; the manager tries again", "error", err)
		}
	}
}

// publishPrimary reads the Cluster again, so that nothing is written by the hand
// of an instance that was replaced meanwhile.
func (p *publisher) publishPrimary(ctx context.Context) error {
	c, _, err := p.by.reread(ctx)
	if err != nil {
		return err
	}
	if !p.by.facts().Publishes() {
		return nil
	}
	return p.kube().PublishPrimary(ctx, p.me, c.ResourceVersion, time.Now())
}
