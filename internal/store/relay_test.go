package store_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"cnmsql.co/internal/store"
)

// relay stands between: it holds up to some KiB of what a client sends, and passes on so many in a
// second.
type relay struct{ holds, perSecond int }

// before gives the address of a relay before a server.
func (r relay) before(t *testing.T, server *httptest.Server) string {
	t.Helper()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = front.Close() })
	go func() {
		for {
			c, err := front.Accept()
			if err != nil {
				return
			}
			_ = c.(*net.TCPConn).SetReadBuffer(256 << 10) // more than a packet of the loopback
			back, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, back) }()
			go r.pass(c, back)
		}
	}()
	return "http://" + front.Addr().String()
}

// pass ends with the client, or the server.
func (r relay) pass(from io.Reader, to io.WriteCloser) {
	held := make(chan []byte, r.holds/16) // of 16 KiB
	go func() {
		defer close(held)
		for {
			piece := make([]byte, 16<<10)
			n, err := from.Read(piece)
			held <- piece[:n]
			if err != nil {
				return
			}
		}
	}()
	begun, passed := time.Now(), 0
	for piece := range held {
		_, _ = to.Write(piece)
		passed += len(piece)
		time.Sleep(time.Until(begun.Add(time.Second * time.Duration(passed) / time.Duration(r.perSecond<<10))))
	}
	_ = to.Close()
}

// TestWhatIsHeldOnTheWayIsNoSilence: of 10 MiB, 3 MiB and what the kernel holds are still on their
// way when the last byte is sent. They take 3 to 4 s, and the rest took 6 s or more.
func TestWhatIsHeldOnTheWayIsNoSilence(t *testing.T) {
	t.Parallel()
	const silence = 1500 * time.Millisecond
	var last time.Time // when the store had all
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		last = time.Now()
	}))
	t.Cleanup(server.Close)
	line := relay{holds: 3 << 10, perSecond: 1 << 10}
	s := openFor(t, patience{silence, silence}, configure(t, line.before(t, server)))
	moved := make(chan time.Time, 10000)
	must(t, s.Put(store.WithProgress(t.Context(), func() { moved <- time.Now() }), "key", make([]byte, 10<<20)))
	close(moved)
	for at := range moved { // who waits for the store has to hear that it is waited for
		if last.Sub(at) < 2*time.Second {
			return
		}
	}
	t.Error("nobody was told that what is on its way is waited for")
}

// TestAStoreThatIsSilentAfterAQuickBodyIsLeft after one silence.
func TestAStoreThatIsSilentAfterAQuickBodyIsLeft(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	s, _ := faulty(t, forSilence, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-over
	})
	t.Cleanup(func() { close(over) }) // before the server is closed
	begun := time.Now()
	mustFail(t, s.Put(t.Context(), "key", make([]byte, 64<<10)), store.Stalled)
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}
