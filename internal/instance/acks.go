package instance

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/mysql"
)

// acknowledger tells mysqld whether it gives acknowledgements, and for how many its commits wait.
// What was promised of that stands on the volume.
type acknowledger struct {
	log      *slog.Logger
	sessions *sessions
	by       acknowledging
	// asks is mysqld.
	asks func() *mysql.Server
}

// acknowledging is what an acknowledger asks of its manager.
type acknowledging interface {
	// mayWrite is the process, and whether it may accept writes.
	mayWrite() (*process, bool)
	// ackRule is for how long a commit waits, and whether that is for ever by the Cluster's durability.
	ackRule() (forEver bool, timeout time.Duration)
	// kept is what is on the volume, and keep changes it.
	kept() volumeRecord
	keep(change func(*volumeRecord)) error
}

func newAcknowledger(m *manager, s *sessions) *acknowledger {
	return &acknowledger{log: m.log, sessions: s, by: m, asks: func() *mysql.Server { return m.roles }}
}

// renewAcks turns the waiting for acknowledgements off on a server that takes no writes yet, for
// requireAcks to turn it on anew. A server that was demoted may have fallen back to waiting for
// nobody, and only turning the feature off and on makes it wait from the first commit on.
func (k *acknowledger) renewAcks(ctx context.Context) error {
	if _, writes := k.by.mayWrite(); writes {
		return nil
	}
	s, err := k.asks().SemiSync(ctx)
	if err != nil || !s.SourceEnabled {
		return err
	}
	return k.asks().RequireAcks(ctx, 0, 0)
}

// promised is what is remembered of acknowledgements.
func (k *acknowledger) promised() agent.Promised {
	r := k.by.kept()
	return r.promised()
}

// requireAcks remembers the number before it is applied, so that a restart in
// place never opens with fewer than a commit was promised.
func (k *acknowledger) requireAcks(ctx context.Context, a agent.Awaits) error {
	forEver, timeout := k.by.ackRule()
	_, writes := k.by.mayWrite()
	begins := false
	err := k.by.keep(func(r *volumeRecord) {
		var promised agent.Promised
		promised, begins = r.promised().Before(a, forEver && a.Acks > 0, writes)
		r.setPromised(promised)
	})
	if err != nil {
		return err
	}
	if err := k.asks().RequireAcks(ctx, a.Acks, timeout); err != nil {
		return err
	}
	var base gtid.Set
	if begins {
		if base, err = k.asks().Executed(ctx); err != nil {
			return err
		}
	}
	return k.by.keep(func(r *volumeRecord) {
		r.Acks = a.Acks
		if begins {
			r.TailEpoch, r.TailBase = a.Epoch, base.String()
		}
	})
}

// giveAcks has mysqld acknowledge, or not. That counts from the next connection on, so that receiving is ended, and
// started again by the next decision. It is ended first: the decision goes by the variable, and what fails between
// both leaves the variable as it was, and is done again. The other way round the connection would go on, and
// acknowledge in the way of before, with nobody to notice.
func (k *acknowledger) giveAcks(ctx context.Context, on bool) error {
	if err := k.asks().StopReceiving(ctx); err != nil {
		return err
	}
	return k.asks().GiveAcks(ctx, on)
}

// awaitAcksNoLonger ends the wait for acknowledgements on a server that is not the primary, for the
// applier of a replica must not wait for anybody. Nobody waits at this moment: the server could not
// have become read-only otherwise, or does not apply yet. Where a session waits all the same, or
// that is not known, it does nothing.
func (k *acknowledger) awaitAcksNoLonger() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s, err := k.asks().SemiSync(ctx); err != nil || !s.SourceEnabled || s.WaitSessions > 0 {
		return
	}
	if err := k.asks().AwaitAcksNoLonger(ctx); err != nil {
		k.log.Warn("cannot switch off the wait for acknowledgements on a server that is not the primary", "error", err)
	}
}

// dropAcks turns the feature off on a replica. It is carried through: an order
// that turned it on again must find it off, not on its way. Who waits by then is the applier,
// of which nobody reads success; of a client that waits, whoever reads it would be deceived.
func (k *acknowledger) dropAcks() error {
	ctx, cancel := context.WithTimeout(context.Background(), agent.DropAcksLimit)
	defer cancel()
	clients, err := k.sessions.open(ctx)
	if err != nil || slices.ContainsFunc(clients, mysql.Session.AwaitsAck) {
		return err
	}
	return k.asks().RequireAcks(ctx, 0, 0)
}

// What an acknowledger asks of its manager, besides.

func (m *manager) ackRule() (forEver bool, timeout time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.st.cluster.view.WaitsForEver() {
		return true, mysql.Forever
	}
	return false, declared.AckTimeout(&m.st.cluster.object.Spec)
}
