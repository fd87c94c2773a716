package instance

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cnmsql.co/internal/mysql"
)

// obedient is a mysqld that lets everybody in, and says to each statement that it is done, or fails.
type obedient struct {
	socket string
	fails  func(statement string) bool

	mu   sync.Mutex
	done []string
}

// has reports whether it has done what a statement begins with.
func (o *obedient) has(done func(statement string) bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.done, done)
}

func startObedient(t *testing.T, fails func(statement string) bool) *obedient {
	o := &obedient{socket: filepath.Join(t.TempDir(), "s"), fails: fails}
	l, err := net.Listen("unix", o.socket)
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			o.serve(c)
		}
	}()
	return o
}

// serve speaks MySQL's protocol with one client after the other.
func (o *obedient) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	packet := func(number byte, payload []byte) {
		_, _ = c.Write(append([]byte{byte(len(payload)), 0, 0, number}, payload...))
	}
	greeting := []byte("\x0a9.7.4\x00\x01\x00\x00\x0012345678\x00\x01\x82\xff\x02\x00\x08\x00\x15")
	packet(0, slices.Concat(greeting, make([]byte, 10), []byte("123456789012\x00mysql_native_password\x00")))
	ok := []byte{0, 0, 0, 2, 0, 0, 0}
	for first := true; ; first = false {
		head := make([]byte, 4)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		said := make([]byte, int(head[0])|int(head[1])<<8)
		if _, err := io.ReadFull(c, said); err != nil {
			return
		}
		query, isQuery := bytes.CutPrefix(said, []byte{3})
		switch {
		case !first && isQuery && o.fails(string(query)):
			packet(head[3]+1, []byte("\xff\x51\x04#HY000it fails"))
		case !first && isQuery:
			o.mu.Lock()
			o.done = append(o.done, string(query))
			o.mu.Unlock()
			fallthrough
		default:
			packet(head[3]+1, ok)
		}
	}
}

// It is looked at the variable, as the decision does: while receiving was not
// ended, it has to be as it was.
func TestWhatIsHalfDoneAboutAcknowledgementsIsSeen(t *testing.T) {
	const stop, set = "STOP REPLICA IO_THREAD", "SET GLOBAL rpl_semi_sync"
	isOf := func(statement string) func(string) bool {
		return func(q string) bool { return strings.HasPrefix(q, statement) }
	}
	for _, failing := range []string{stop, set, "nothing"} {
		server := startObedient(t, isOf(failing))
		anyone := func() ([]mysql.Account, error) { return []mysql.Account{{User: "root"}}, nil }
		asks := mysql.Open(server.socket, func() mysql.Version { return mysql.Version{} }, anyone)
		err := (&acknowledger{asks: func() *mysql.Server { return asks }}).giveAcks(t.Context(), false)
		asks.Close()
		isSet, isStopped := server.has(isOf(set)), server.has(isOf(stop))
		if (err == nil) != (failing == "nothing") || isSet != (failing == "nothing") || isStopped != (failing != stop) {
			t.Errorf("where %s fails: %v, stopped %t, set %t", failing, err, isStopped, isSet)
		}
	}
}
