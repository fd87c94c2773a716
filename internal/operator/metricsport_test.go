package operator

import (
	"context"
	"testing"

	"cnmsql.co/internal/crowd"
	"cnmsql.co/internal/crowd/crowdtest"
)

// TestAFloodTakesNoScrapersPlace holds that the operator's metrics are answered, whoever else connects.
func TestAFloodTakesNoScrapersPlace(t *testing.T) {
	server, err := newMetricsServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- server.Start(ctx) }()
	crowdtest.Withstands(t, server.Listener.Addr().String(), "/metrics", crowd.Most)
	end()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// TestNoMetricsAreServedWhereNoneAreWanted holds of the flag's two ways to say so.
func TestNoMetricsAreServedWhereNoneAreWanted(t *testing.T) {
	for _, address := range []string{"", "0"} {
		if server, err := newMetricsServer(address); server != nil || err != nil {
			t.Errorf("%q: %v, %v", address, server, err)
		}
	}
}
