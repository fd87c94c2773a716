package alive

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"cnmsql.co/internal/crowd"
)

// Probes answers /healthz and /readyz for as long as the process lives. The process is healthy while it answers,
// and not ready until BecomeReady was called.
type Probes struct {
	ready  atomic.Bool
	server *http.Server
	at     net.Addr
}

// Serve answers at this address from now on; at none if it is "" or "0".
func Serve(address string) (*Probes, error) {
	p := &Probes{}
	if address == "" || address == "0" {
		return p, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for the kubelet's probes at %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("/readyz", p.tellReady)
	p.at, p.server = listener.Addr(), crowd.PlainServer(mux, nil)
	go func() { _ = p.server.Serve(crowd.Bound(listener, crowd.Most)) }()
	return p, nil
}

func (p *Probes) tellReady(w http.ResponseWriter, _ *http.Request) {
	if !p.ready.Load() {
		http.Error(w, "waits for the API server: it does not answer, or not all was read yet that the operator watches",
			http.StatusServiceUnavailable)
		return
	}
	fmt.Fprint(w, "ok")
}

// BecomeReady says that the operator works, or stands by.
func (p *Probes) BecomeReady() { p.ready.Store(true) }

// Close ends the answers.
func (p *Probes) Close() error {
	if p.server == nil {
		return nil
	}
	if err := p.server.Close(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
