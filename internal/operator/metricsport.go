package operator

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"cnmsql.co/internal/crowd"
)

const (
	// scrapesMost is how many are answered at once: a pair of Prometheus servers, and a human.
	scrapesMost = 4
	// scrapePatience is how long an operator that ends waits for a scrape.
	scrapePatience = time.Second
)

// serveMetrics has the manager answer scrapes at this address, at none if it is "" or "0". The library's own server
// of metrics takes no listener, and so keeps as many connections as come.
func serveMetrics(mgr ctrl.Manager, address string) error {
	server, err := newMetricsServer(address)
	if err != nil || server == nil {
		return err
	}
	return mgr.Add(server)
}

// newMetricsServer listens already, and answers once it is started; nil without an address.
func newMetricsServer(address string) (*ctrlmanager.Server, error) {
	if address == "" || address == "0" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for scrapes of the metrics at %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics.Registry,
		promhttp.HandlerOpts{MaxRequestsInFlight: scrapesMost}))
	patience := scrapePatience
	return &ctrlmanager.Server{Name: "metrics", Server: crowd.PlainServer(mux, nil),
		Listener: crowd.Bound(listener, crowd.Most), ShutdownTimeout: &patience}, nil
}
