package instance

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/crowd"
	"cnmsql.co/internal/crowd/crowdtest"
)

// listening is an instance whose manager serves its three ports, and does nothing else.
func listening(t *testing.T) (*world, *node) {
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
	return w, n
}

// at is the address of one of its ports.
func (n *node) at(port int) string { return net.JoinHostPort(n.opt.Listen, strconv.Itoa(port)) }

// TestAFloodTakesNoPortOfAnInstanceFromOthers holds of the two ports without TLS.
func TestAFloodTakesNoPortOfAnInstanceFromOthers(t *testing.T) {
	_, n := listening(t)
	crowdtest.Withstands(t, n.at(n.opt.ProbePort), "/livez", crowd.Most)
	crowdtest.Withstands(t, n.at(n.opt.MetricsPort), "/metrics", crowd.Most)
}

// TestAFloodWithoutCertificatesTakesNoCallersPlace holds of the control API: those who have not shown yet who they are
// are bounded, and one who has is neither closed nor kept out by them.
func TestAFloodWithoutCertificatesTakesNoCallersPlace(t *testing.T) {
	w, n := listening(t)
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
