package instance

import (
	"context"
	"net"
	"testing"
	"time"

	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

// Who asked for a status, and had to wait for others until nobody waited any more, has not asked
// mysqld: that it did not answer must not be said of it, for a primary that hangs is replaced.
func TestAQuestionThatWasNotAskedIsNoSilence(t *testing.T) {
	dir := t.TempDir()
	m := newManager(Options{Instance: "db-1", Dirs: Dirs{Run: dir}}.withDefaults())
	silent, err := net.Listen("unix", m.opt.Dirs.socket())
	must(t, err)
	defer func() { _ = silent.Close() }()
	m.pulse = mysql.Open(m.opt.Dirs.socket(), m.launcher.version, func() ([]mysql.Account, error) {
		return []mysql.Account{{User: "root"}}, nil
	})
	m.update(func(s *state) { s.mysqld.proc = &process{done: make(chan struct{})} })
	misses := func() int { return get(m, func(s *state) int { return s.status.misses }) }

	over, cancel := context.WithCancel(t.Context())
	cancel()
	short, end := context.WithTimeout(t.Context(), agent.AnswerLimit/8)
	defer end()
	for _, late := range []context.Context{over, short} {
		m.pollSince(late, time.Now())
		if n := misses(); n != 0 {
			t.Fatalf("a question for which there was no time counts as unanswered: %d", n)
		}
	}
	began := time.Now()
	m.pollSince(t.Context(), began)
	if n, took := misses(), time.Since(began); n != 1 || took < agent.AnswerLimit {
		t.Errorf("after %s without an answer %d misses are counted", took, n)
	}
}
