package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/mysql"
)

// A question without an answer is the only one, until it has one; that one is of the past, and not given.
func TestOneQuestionIsAskedAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s single
		var asked atomic.Int32
		answer := make(chan struct{})
		ask := func() (*core.Server, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return s.ask(ctx, func(ctx context.Context) (*core.Server, error) {
				n := asked.Add(1)
				<-answer
				return &core.Server{UUID: fmt.Sprint("answer ", n)}, ctx.Err()
			})
		}
		for range 5 {
			if server, err := ask(); server != nil || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("without an answer: %v, %v", server, err)
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("%d questions were asked side by side", n)
		}
		close(answer)
		if server, err := ask(); err != nil || server.UUID != "answer 2" {
			t.Errorf("when it has answered: %v, %v", server, err)
		}
	})
}

// A mysqld that leaves the question for its status unanswered keeps a session of each.
func TestAStatusThatIsNotAnsweredTakesOneSession(t *testing.T) {
	m := newManager(Options{Instance: "db-1", Dirs: Dirs{Run: t.TempDir()}}.withDefaults())
	silent, err := net.Listen("unix", m.opt.Dirs.socket())
	must(t, err)
	var sessions atomic.Int32
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			sessions.Add(1)
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	m.health = mysql.OpenForStatus(m.opt.Dirs.socket(), m.launcher.version, func() ([]mysql.Account, error) {
		return []mysql.Account{{User: "root"}}, nil
	})
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if server, err := m.askStatus(ctx); server != nil || err == nil {
			t.Errorf("nobody answers: %v, %v", server, err)
		}
	}
	must(t, silent.Close())
	if n := sessions.Load(); n != 1 {
		t.Errorf("five questions took %d sessions", n)
	}
}
