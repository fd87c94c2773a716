package instance

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

// stranger is a server that receives the binary log of an instance and says that it acknowledges: as much of MySQL's
// protocol as that takes, for an account without a password.
type stranger struct {
	t    *testing.T
	conn net.Conn
	from *bufio.Reader
	seq  byte
}

// dump connects, and receives as a server of an ID of its own: mysqld ends the former connection of one that comes
// again.
func dump(t *testing.T, socket, user string, id byte, acknowledges bool) *stranger {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	must(t, err)
	s := &stranger{t: t, conn: conn, from: bufio.NewReader(conn)}
	t.Cleanup(func() { _ = conn.Close() })
	s.read()
	const protocol41, secureConnection, pluginAuth = 1 << 9, 1 << 15, 1 << 19
	const can = protocol41 | secureConnection | pluginAuth
	login := []byte{can & 0xff, can >> 8 & 0xff, can >> 16, 0, 0, 0, 0, 1, 45} // packets of 16 MiB, utf8mb4
	login = append(login, make([]byte, 23)...)
	login = append(append(login, user...), 0, 0)
	s.write(append(append(login, "caching_sha2_password"...), 0))
	for answer := s.read(); answer[0] != 0; answer = s.read() {
		if answer[0] == 0xff {
			t.Fatalf("logging in: %s", answer)
		}
	}
	s.query("SET @source_binlog_checksum = 'NONE'")
	if acknowledges {
		s.query("SET @rpl_semi_sync_replica = 1")
	}
	s.seq = 0
	s.write([]byte{0x12, 4, 0, 0, 0, 0, 0, id, 0x30, 0, 0}) // from the beginning of the first log
	return s
}

func (s *stranger) query(text string) {
	s.seq = 0
	s.write(append([]byte{3}, text...))
	if answer := s.read(); answer[0] != 0 {
		s.t.Fatalf("%s: %s", text, answer)
	}
}

func (s *stranger) write(payload []byte) {
	n := len(payload)
	_, err := s.conn.Write(append([]byte{byte(n), byte(n >> 8), byte(n >> 16), s.seq}, payload...))
	must(s.t, err)
}

func (s *stranger) read() []byte {
	var head [4]byte
	_, err := io.ReadFull(s.from, head[:])
	must(s.t, err)
	payload := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	_, err = io.ReadFull(s.from, payload)
	must(s.t, err)
	s.seq = head[3] + 1
	return payload
}

// ended returns when the connection was closed.
func (s *stranger) ended() chan struct{} {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, s.from)
	}()
	return closed
}

// TestAServerThatIsNoInstanceDoesNotAcknowledge holds that commits do not end by the word of a server that nobody
// elects, and that one which only reads the log is let be.
func TestAServerThatIsNoInstanceDoesNotAcknowledge(t *testing.T) {
	inAll(t)
	w, one, _ := newPair(t, quorum)
	w.order(one, control.SetAcks{Epoch: w.epoch(), Acks: 1})
	w.await(one, "acknowledged", func(r core.Report) bool { return r.Server != nil && r.Server.SemiSync.Clients == 1 })
	root := w.rootOf(one)
	w.exec(root, "CREATE USER reporting@localhost IDENTIFIED WITH caching_sha2_password BY ''")
	w.exec(root, "GRANT REPLICATION SLAVE ON *.* TO reporting@localhost")
	reads := dump(t, one.opt.Dirs.socket(), "reporting", 1, false).ended()
	select {
	case <-dump(t, one.opt.Dirs.socket(), "reporting", 2, true).ended():
	case <-time.After(patience):
		t.Fatal("who acknowledges and is no instance is not cut off")
	}
	w.await(one, "it is told", func(r core.Report) bool {
		return r.Server != nil && strings.HasPrefix(r.Server.SemiSync.Strangers, "reporting@")
	})
	select {
	case <-reads:
		t.Error("whoever only reads the log was cut off, too")
	default:
	}
}

// TestALookThatFailsIsToldOnce holds that polls do not repeat it each time, that its end is told, and that one who
// comes meanwhile is looked at at once.
func TestALookThatFailsIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told strings.Builder
		m := newManager(Options{Dirs: Dirs{Replication: t.TempDir()}}) // the Secret has no username
		m.log = slog.New(slog.NewTextHandler(&told, nil))
		g, of := m.strangers, core.SemiSync{SourceEnabled: true, Clients: 2}
		looks := func() int {
			before := g.looks
			g.cutOff(t.Context(), of)
			if g.looks != before {
				return 1
			}
			return 0
		}
		n := 0
		for range 120 { // polls in a minute
			n += looks()
			time.Sleep(500 * time.Millisecond)
		}
		if n < 4 || n > 6 || strings.Count(told.String(), "is not known") != 1 {
			t.Errorf("%d looks in a minute, and it is told:\n%s", n, &told)
		}
		if of.Clients++; looks() != 1 {
			t.Error("whoever comes while looks fail is not looked at")
		}
		g.note(of, time.Now(), nil)
		g.note(of, time.Now(), nil)
		if strings.Count(told.String(), "is known again") != 1 {
			t.Errorf("the end is told:\n%s", &told)
		}
	})
}
