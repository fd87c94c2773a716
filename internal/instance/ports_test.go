package instance

import (
	"context"
	"crypto/tls"
	numbers "encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/crowd"
	"cnmsql.co/internal/crowd/crowdtest"
	"cnmsql.co/internal/pki"
)

// listening is an instance whose manager serves its three ports, and does nothing else.
func listening(t *testing.T) (*world, *node, []*http.Server) {
	t.Helper()
	w := &world{t: t, site: site{dir: t.TempDir(), port: takePorts(t)}, ca: newAuthority(t)}
	n := w.prepare(1)
	n.opt.Log = io.Discard
	n.opt = n.opt.withDefaults()
	n.m = newManager(n.opt)
	servers, err := n.m.serve()
	must(t, err)
	t.Cleanup(func() {
		close(n.m.ended)
		for _, s := range servers {
			_ = s.Close()
		}
	})
	return w, n, servers
}

// at is the address of one of its ports.
func (n *node) at(port int) string { return net.JoinHostPort(n.opt.Listen, strconv.Itoa(port)) }

// TestAFloodTakesNoPortOfAnInstanceFromOthers holds of the two ports without TLS.
func TestAFloodTakesNoPortOfAnInstanceFromOthers(t *testing.T) {
	_, n, _ := listening(t)
	crowdtest.Withstands(t, n.at(n.opt.ProbePort), "/livez", crowd.Most)
	crowdtest.Withstands(t, n.at(n.opt.MetricsPort), "/metrics", crowd.Most)
}

// TestAFloodWithoutCertificatesTakesNoCallersPlace holds of the control API: those who have not shown yet who they are
// are bounded, and one who has is neither closed nor kept out by them.
func TestAFloodWithoutCertificatesTakesNoCallersPlace(t *testing.T) {
	w, n, _ := listening(t)
	heard, over := make(chan control.Snapshot, 100), make(chan error, 1)
	ctx, end := context.WithCancel(t.Context())
	go func() { over <- w.client(n).Watch(ctx, func(s control.Snapshot) { heard <- s }) }()
	<-heard
	flood := crowdtest.Flood(t, n.at(n.opt.ControlPort), 3*crowd.Most)
	if open := crowdtest.StillOpen(flood); open > crowd.Most || open < crowd.Most/2 {
		t.Errorf("%d connections without a certificate are open", open)
	}
	other, done := context.WithTimeout(t.Context(), 10*time.Second)
	defer done()
	came := errors.New("a snapshot came")
	asked, enough := context.WithCancelCause(other)
	_ = w.client(n).Watch(asked, func(control.Snapshot) { enough(came) })
	if why := context.Cause(asked); !errors.Is(why, came) {
		t.Errorf("another caller is not answered: %v", why)
	}
	select {
	case err := <-over:
		t.Errorf("a caller who was known before lost its connection: %v", err)
	default:
	}
	end()
}

// TestAPortOfAnInstanceWaitsForNobodyForLong holds of what no flood shows within a test: the limits that the servers
// were started with.
func TestAPortOfAnInstanceWaitsForNobodyForLong(t *testing.T) {
	_, _, servers := listening(t)
	for i, s := range servers {
		header, idle := s.ReadHeaderTimeout, s.IdleTimeout
		if header <= 0 || header > 5*time.Second || idle <= 0 || idle > 2*time.Minute {
			t.Errorf("server %d waits %s for a header and %s for another request", i, header, idle)
		}
		if secure := s.TLSConfig != nil; !secure && (s.WriteTimeout <= 0 || s.WriteTimeout > time.Minute) {
			t.Errorf("server %d waits %s for who takes no answer", i, s.WriteTimeout)
		}
	}
}

// TestTheControlAPITellsCallersItsLimits reads the settings with which a connection of HTTP/2 begins.
func TestTheControlAPITellsCallersItsLimits(t *testing.T) {
	w, n, _ := listening(t)
	cert, key := w.ca.issue(t, pki.OrgInstance, "db-2")
	leaf, err := tls.X509KeyPair([]byte(cert), []byte(key))
	must(t, err)
	conn, err := tls.Dial("tcp", n.at(n.opt.ControlPort), &tls.Config{MinVersion: tls.VersionTLS13,
		InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{leaf}})
	must(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	must(t, err)
	head := make([]byte, 9) // the length of the frame, what it is, flags, the stream
	_, err = io.ReadFull(conn, head)
	must(t, err)
	body := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	_, err = io.ReadFull(conn, body)
	must(t, err)
	told := map[uint16]uint32{}
	for ; len(body) >= 6; body = body[6:] {
		told[numbers.BigEndian.Uint16(body)] = numbers.BigEndian.Uint32(body[2:])
	}
	const streams, headers = 3, 6 // by their numbers in RFC 9113
	if head[3] != 4 || told[streams] != 32 || told[headers] == 0 || told[headers] > 20<<10 {
		t.Errorf("a frame %d tells %d streams and %d bytes of headers", head[3], told[streams], told[headers])
	}
}

// slow is asked for snapshots, and answers none until it may.
type slow struct{ asked, may chan struct{} }

func (s slow) snapshot(time.Time) (control.Snapshot, <-chan struct{}) {
	s.asked <- struct{}{}
	<-s.may
	return control.Snapshot{}, nil
}

// TestManyScrapesAreNotAnsweredAtOnce holds because each of them asks mysqld.
func TestManyScrapesAreNotAnsweredAtOnce(t *testing.T) {
	by := slow{asked: make(chan struct{}), may: make(chan struct{})}
	h := (&scraper{by: by}).handler()
	scrape := func() int {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return answer.Code
	}
	codes := make(chan int, scrapesMost)
	for range scrapesMost {
		go func() { codes <- scrape() }()
		<-by.asked
	}
	if code := scrape(); code != http.StatusServiceUnavailable {
		t.Errorf("one scrape too many is answered with %d", code)
	}
	close(by.may)
	for range scrapesMost {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a scrape is answered with %d", code)
		}
	}
}
