package writer

import (
	"context"
	"time"
)

// worker is one connection, with its reincarnations.
type worker struct {
	connection int
	config     Config
	endpoint   endpoint
	record     *record
	session    session // nil: to be made
	seq        int64
}

// run inserts at its pace until the context ends, and lets what was sent come to its end.
func (k *worker) run(ctx context.Context) {
	defer k.disconnect()
	next := time.Now().Add(k.phase())
	for sleep(ctx, time.Until(next)) {
		start := time.Now()
		if k.step(ctx) {
			next = later(next.Add(k.config.Interval), time.Now())
		} else {
			next = start.Add(k.config.RetryPace)
		}
	}
}

// later keeps the pace exact although timers fire late, and yet does not make up in a burst for
// what a slow server held back.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// phase spreads the connections over the interval, so that together they see an outage begin and end finely.
func (k *worker) phase() time.Duration {
	return max(k.config.Interval, 0) * time.Duration(k.connection) / time.Duration(k.config.Connections)
}

// step connects if there is no connection, and inserts one row. After any error the connection is given up.
func (k *worker) step(ctx context.Context) (ok bool) {
	if k.session == nil && !k.connect(ctx) {
		return false
	}
	k.seq++
	start := time.Now()
	err := k.session.insert(k.connection, k.seq)
	k.record.add(k.connection, start, err)
	if err != nil {
		k.disconnect()
	}
	return err == nil
}

func (k *worker) connect(ctx context.Context) bool {
	s, err := k.endpoint.connect(ctx)
	switch {
	case err == nil:
		k.session = s
		return true
	case ctx.Err() == nil: // being stopped is no failure of the endpoint
		k.record.addUnconnected(err)
	}
	return false
}

func (k *worker) disconnect() {
	if k.session != nil {
		k.session.close()
		k.session = nil
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
