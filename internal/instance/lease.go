package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/observation"
)

// lease is the record <cluster>-primary, which the primary holds while it is
// writable. The operator makes it, and makes it again where it is gone; an instance may
// only update it. Its clock is never compared with another machine's: an observer
// times how long it has seen the record unchanged.
type lease struct {
	kube Kubernetes
	me   string

	mu      sync.Mutex
	epoch   int64
	renewed time.Time
}

// held is the epoch at which the lease is held, 0 if it is not, and when it was
// renewed last.
func (l *lease) held() (epoch int64, renewed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch, l.renewed
}

// hold notes that the lease was taken or renewed for an epoch, unless it is held for a later one.
func (l *lease) hold(epoch int64, renewed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if agent.TakesLease(l.epoch, epoch) {
		l.epoch, l.renewed = epoch, renewed
	}
}

// drop notes that the lease is not held for an epoch any more, nor for an earlier one.
func (l *lease) drop(epoch int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if agent.EndsLease(l.epoch, epoch) {
		l.epoch, l.renewed = 0, time.Time{}
	}
}

// acquire takes the lease for an epoch. A record of a lower epoch may be taken
// over: the promotion carries the proof that its holder cannot write any more.
func (l *lease) acquire(ctx context.Context, epoch int64) error {
	began := time.Now()
	record, err := l.kube.GetLease(ctx)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("taking the lease for epoch %d: the operator makes it first, and has not yet", epoch)
	}
	if err != nil {
		return fmt.Errorf("taking the lease for epoch %d: %w", epoch, err)
	}
	is := observation.LeaseFacts(record)
	if why := agent.LeaseRefused(l.me, epoch, is.Holder, is.Epoch); why != "" {
		return fmt.Errorf("taking the lease for epoch %d: %s", epoch, why)
	}
	l.fill(record, epoch)
	if _, err := l.kube.UpdateLease(ctx, record); err != nil {
		return fmt.Errorf("taking the lease for epoch %d: %w", epoch, err)
	}
	l.hold(epoch, began)
	return nil
}

// fill writes ourselves into a record.
func (l *lease) fill(record *coordination.Lease, epoch int64) {
	now, seconds := metav1.NowMicro(), int32(core.LeaseTTL.Seconds())
	if observation.LeaseFacts(record).Holder != l.me {
		var transitions int32
		if record.Spec.LeaseTransitions != nil {
			transitions = *record.Spec.LeaseTransitions + 1
		}
		record.Spec.LeaseTransitions = &transitions
		record.Spec.AcquireTime = &now
	}
	record.Spec.HolderIdentity, record.Spec.LeaseDurationSeconds, record.Spec.RenewTime = &l.me, &seconds, &now
	if record.Annotations == nil {
		record.Annotations = map[string]string{}
	}
	record.Annotations[v1alpha1.AnnotationEpoch] = strconv.FormatInt(epoch, 10)
}

// renew says once more that this instance is primary.
func (l *lease) renew(ctx context.Context, epoch int64) error {
	began := time.Now()
	record, err := l.kube.GetLease(ctx)
	if err != nil { // it is taken once more when somebody deleted it and the operator has made it again
		return fmt.Errorf("renewing the lease: %w", err)
	}
	if is := observation.LeaseFacts(record); agent.IsLeaseLost(l.me, epoch, is.Holder, is.Epoch) {
		l.drop(epoch)
		return fmt.Errorf("renewing the lease: %s holds it at epoch %d", is.Holder, is.Epoch)
	}
	l.fill(record, epoch)
	if _, err := l.kube.UpdateLease(ctx, record); err != nil {
		return fmt.Errorf("renewing the lease: %w", err)
	}
	l.hold(epoch, began)
	return nil
}

// release leaves the record to nobody and to no epoch, as the operator makes it, if it is ours and
// of this epoch or an earlier one. Writes have stopped before.
func (l *lease) release(ctx context.Context, epoch int64) error {
	record, err := l.kube.GetLease(ctx)
	if apierrors.IsNotFound(err) {
		l.drop(epoch)
		return nil
	}
	if err != nil {
		return fmt.Errorf("releasing the lease of epoch %d: %w", epoch, err)
	}
	if is := observation.LeaseFacts(record); agent.MayRelease(l.me, epoch, is.Holder, is.Epoch) {
		record.Spec.HolderIdentity, record.Spec.AcquireTime, record.Spec.RenewTime = nil, nil, nil
		delete(record.Annotations, v1alpha1.AnnotationEpoch)
		if _, err := l.kube.UpdateLease(ctx, record); err != nil {
			return fmt.Errorf("releasing the lease of epoch %d: %w", epoch, err)
		}
	}
	l.drop(epoch)
	return nil
}

// leaseKeeper takes, renews and gives back the primary's lease, and confirms the promotion behind it.
type leaseKeeper struct {
	me  string
	log *slog.Logger
	by  leased
	// record is the lease, which says whether it is held.
	record func() *lease
	// wake has it look now.
	wake chan struct{}
	// gone has it looked now whether this primary must isolate itself.
	gone func()
}

// leased is what a leaseKeeper asks of its manager.
type leased interface {
	facts() *agent.Facts
	// reread reads the Cluster from the API server, and goes by it unless a newer view came meanwhile.
	reread(ctx context.Context) (c *v1alpha1.Cluster, taken bool, err error)
	// noteConfirmed: the promotion of an epoch was read from the API server.
	noteConfirmed(epoch int64)
}

func newLeaseKeeper(m *manager) *leaseKeeper {
	return &leaseKeeper{me: m.opt.Instance, log: m.log, by: m,
		record: func() *lease { return m.lease }, wake: make(chan struct{}, 1),
		gone: func() { poke(m.isolator.wake) }}
}

// acquire takes the lease, and confirms the promotion behind it. Whoever granted a
// later epoch since has taken the record, or is seen now.
func (k *leaseKeeper) acquire(ctx context.Context, epoch int64) error {
	defer k.tellIfGone()
	if err := k.record().acquire(ctx, epoch); err != nil {
		return err
	}
	err := k.confirmPromotion(ctx, epoch)
	if errors.Is(err, errEpochEnded) {
		return errors.Join(err, k.record().release(ctx, epoch))
	}
	if err != nil {
		k.record().drop(epoch)
	}
	return err
}

var errEpochEnded = errors.New("that epoch has ended")

// confirmPromotion reads the Cluster from the API server: a view that is behind may permit
// what is of the past.
func (k *leaseKeeper) confirmPromotion(ctx context.Context, epoch int64) error {
	c, _, err := k.by.reread(ctx)
	if err != nil {
		return fmt.Errorf("confirming the promotion of epoch %d: %w", epoch, err)
	}
	if v, err := clusterFor(c, k.me); err != nil || !v.Promotes(k.me, epoch) {
		return fmt.Errorf("confirming the promotion of epoch %d: %w", epoch, errEpochEnded)
	}
	k.by.noteConfirmed(epoch)
	return nil
}

// keepLease renews the lease while this instance is writable and its mysqld
// answers: a hung server must lose it. It is given back once nothing can be
// written any more.
func (k *leaseKeeper) keepLease(ctx context.Context) {
	tick := newTicker(agent.LeaseLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.again()
		case <-k.wake:
		}
		if err := k.tendLease(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn("cannot take, renew or release the Lease of the primary", "error", err)
		}
	}
}

func (k *leaseKeeper) tendLease(ctx context.Context) error {
	f := k.by.facts()
	switch f.LeaseDuty() {
	case agent.ReleaseLease:
		return k.record().release(ctx, f.LeaseEpoch)
	case agent.RenewLease:
		defer k.tellIfGone()
		return k.record().renew(ctx, f.LeaseEpoch)
	}
	return nil
}

// tellIfGone has it looked at once whether this primary must isolate itself: that is looked for again
// only when the lease would have run out.
func (k *leaseKeeper) tellIfGone() {
	if held, _ := k.record().held(); held == 0 {
		k.gone()
	}
}

// What a leaseKeeper asks of its manager, besides.

func (m *manager) noteConfirmed(epoch int64) {
	m.update(func(s *state) { s.cluster.confirmed = epoch })
}
