package alive

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

func asked(t *testing.T, p *Probes, path string) int {
	t.Helper()
	answer, err := http.Get(fmt.Sprintf("http://%s%s", p.at, path))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

func TestAnOperatorThatWaitsIsAliveAndNotReady(t *testing.T) {
	p, err := Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if healthy, ready := asked(t, p, "/healthz"), asked(t, p, "/readyz"); healthy != 200 || ready != 503 {
		t.Errorf("before it works: %d, %d", healthy, ready)
	}
	p.BecomeReady()
	if healthy, ready := asked(t, p, "/healthz"), asked(t, p, "/readyz"); healthy != 200 || ready != 200 {
		t.Errorf("when it works: %d, %d", healthy, ready)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if again, err := Serve(p.at.String()); err != nil {
		t.Errorf("who starts again cannot listen: %v", err)
	} else {
		_ = again.Close()
	}
}

func TestNoProbesAreServedWhereNoneAreWanted(t *testing.T) {
	for _, address := range []string{"", "0"} {
		p, err := Serve(address)
		if err != nil || p.at != nil || p.Close() != nil {
			t.Errorf("%q: %+v, %v", address, p, err)
		}
	}
}

// TestAnAPIServerThatComesBackIsWaitedFor waits while nobody listens, and while a balancer answers in its place; an
// API server that refuses is there.
func TestAnAPIServerThatComesBackIsWaitedFor(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := listener.Addr().String()
	_ = listener.Close()
	conf := &rest.Config{Host: "http://" + at}
	if err := Answers(t.Context(), conf); err == nil {
		t.Fatal("one at whose address nobody listens answers")
	}
	over := make(chan error, 1)
	go func() { over <- Await(t.Context(), conf, logr.Discard()) }()
	codes := make(chan int, 2)
	codes <- http.StatusBadGateway
	codes <- http.StatusForbidden
	if listener, err = net.Listen("tcp", at); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(<-codes)
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	defer server.Close()
	if err := <-over; err != nil || len(codes) != 0 {
		t.Errorf("it was waited for with %v, and %d of its answers were not asked for", err, len(codes))
	}
}

func TestWhoIsToEndWaitsForNobody(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if err := Await(ctx, &rest.Config{Host: "http://127.0.0.1:1"}, logr.Discard()); err == nil {
		t.Error("it was told that the API server answers")
	}
}
