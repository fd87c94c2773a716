package instance

import (
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/crowd"
)

// idleLimit is longer than any caller of the control API keeps a connection that it does not use.
const idleLimit = 2 * time.Minute

// serve starts the control API, the probes and the metrics.
func (m *manager) serve() ([]*http.Server, error) {
	errorLog := slog.NewLogLogger(m.log.Handler(), slog.LevelDebug)
	var out []*http.Server
	for _, s := range []struct {
		port   int
		server *http.Server
		serve  func(*http.Server, net.Listener) error
	}{
		{m.opt.ControlPort, newControlServer(m, errorLog), serveKnown},
		{m.opt.ProbePort, crowd.PlainServer(newProber(m).handler(), errorLog), serveAnybody},
		{m.opt.MetricsPort, crowd.PlainServer(newScraper(m).handler(), errorLog), serveAnybody},
	} {
		l, err := net.Listen("tcp", m.opt.address(s.port))
		if err != nil {
			return nil, fmt.Errorf("listening on port %d: %w", s.port, err)
		}
		go func() {
			if err := s.serve(s.server, l); !errors.Is(err, http.ErrServerClosed) {
				m.log.Error("a server of the manager has ended", "port", s.port, "error", err)
			}
		}()
		out = append(out, s.server)
	}
	return out, nil
}

// newControlServer is the server of the control API.
func newControlServer(m *manager, errorLog *log.Logger) *http.Server {
	api := answers{m, &reporter{m, m.ended}, m.voucher, m.checker, m.replacer}
	return &http.Server{Handler: control.NewHandler(api), TLSConfig: control.ServerTLS(m.tls.certificate, m.tls.pool),
		ReadHeaderTimeout: 5 * time.Second, IdleTimeout: idleLimit, MaxHeaderBytes: 16 << 10,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 32}, ErrorLog: errorLog}
}

// serveKnown answers those who have a certificate of the cluster.
func serveKnown(s *http.Server, l net.Listener) error { return crowd.ServeKnown(s, l, crowd.Most) }

// serveAnybody answers without TLS: what is held for those who ask counts in the memory limit of mysqld's container.
func serveAnybody(s *http.Server, l net.Listener) error { return s.Serve(crowd.Bound(l, crowd.Most)) }
