package instance

import (
	"context"
	"net"
	"slices"
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
// A demotion does not wait for those, nor is mysqld killed because of them. The server leaves a few
// microseconds for such a KILL, and nothing can hold it there: the test tries, until it had the luck.
func TestAConnectionThatCannotBeClosedHoldsUpNoDemotion(t *testing.T) {
	inAll(t)
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

// What a demotion waits for, of the sessions that were open before.
func TestADemotionWaitsForWhoMaySpeakYet(t *testing.T) {
	former := []mysql.Session{
		{ID: 1, User: "app", Command: "Query"},
		{ID: 2, User: "app", Command: "Sleep"},
		{ID: 3, User: "unauthenticated user", Command: "Connect"},
		{ID: 4, User: "unauthenticated user", Command: "Connect"},
		{ID: 5, User: "app", Command: "Query"},
	}
	now := []mysql.Session{
		{ID: 1, User: "app", Command: "Killed", Wait: "Waiting for semi-sync ACK from replica"},
		{ID: 3, User: "unauthenticated user", Command: "Killed"},
		{ID: 4, User: "unauthenticated user", Command: "Connect"},
		{ID: 5, User: "app", Command: "Killed"},
		{ID: 6, User: "app", Command: "Query"},
	}
	want := []mysql.Session{now[0], now[2], now[3]}
	if left := stillThere(former, now); !slices.Equal(left, want) {
		t.Errorf("waits for %+v, want %+v", left, want)
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
	ctx, cancel := context.WithTimeout(context.Background(), 8*patience)
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
