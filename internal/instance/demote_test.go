package instance

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

// A connection is listed as a session a little before KILL can close it. One that is killed
// in between stays until its client has spoken, or until connect_timeout is over (ten seconds).
// A demotion does not wait for those, nor is mysqld killed because of them.
func TestAConnectionThatCannotBeClosedHoldsUpNoDemotion(t *testing.T) {
	w := newWorld(t, nil)
	one := w.start(1)
	w.bootstrap(one)
	w.stayKilled(one)
	began := time.Now()
	r := w.order(one, control.Demote{Epoch: w.epoch() + 1})
	if took := time.Since(began); r.State != core.Running || took > agent.DemoteLimit(true) {
		t.Errorf("after %s: %+v", took, r)
	}
	if sessions, err := one.m.sessions.open(context.Background()); err != nil || !anyUnheard(sessions) {
		t.Errorf("there was nothing that could hold it up: %+v, %v", sessions, err)
	}
}

func anyUnheard(sessions []mysql.Session) bool {
	for _, s := range sessions {
		if s.EndsUnheard() {
			return true
		}
	}
	return false
}

// stayKilled connects without a word, and kills what is listed of that, until there is a
// session that stays.
func (w *world) stayKilled(n *node) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for ctx.Err() == nil {
		for range 100 {
			conn, err := net.Dial("tcp", net.JoinHostPort(n.opt.Listen, strconv.Itoa(n.opt.MySQLPort)))
			must(w.t, err)
			w.t.Cleanup(func() { _ = conn.Close() })
			sessions, err := n.m.sessions.open(ctx)
			must(w.t, err)
			must(w.t, n.m.roles.Kill(ctx, sessions))
		}
		<-time.After(300 * time.Millisecond) // what KILL could close is gone by then
		if sessions, err := n.m.sessions.open(ctx); err == nil && anyUnheard(sessions) {
			return
		}
	}
	w.t.Fatal("KILL closes every connection at once")
}
