package alive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"cnmsql.co/internal/crowd"
	"cnmsql.co/internal/crowd/crowdtest"
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

// TestAFloodTakesNoProbesPlace holds that the kubelet hears an operator that is alive, whoever else connects.
func TestAFloodTakesNoProbesPlace(t *testing.T) {
	p, err := Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	crowdtest.Withstands(t, p.at.String(), "/healthz", crowd.Most)
}

func TestNoProbesAreServedWhereNoneAreWanted(t *testing.T) {
	for _, address := range []string{"", "0"} {
		p, err := Serve(address)
		if err != nil || p.at != nil || p.Close() != nil {
			t.Errorf("%q: %+v, %v", address, p, err)
		}
	}
}

// TestAnAPIServerThatComesBackIsWaitedFor waits while nobody listens, while a balancer answers in its place, and while
// it does not know who asks; an API server that forbids is there.
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
	codes := make(chan int, 3)
	codes <- http.StatusBadGateway
	codes <- http.StatusUnauthorized
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

// counted is a cache that is synced or not, and counts how often that was asked.
type counted struct {
	cache.Cache
	synced bool
	asked  int
}

func (c *counted) WaitForCacheSync(context.Context) bool {
	c.asked++
	return c.synced
}

// TestAKindThatCannotBeListedHoldsUpItsOwnControllerOnly holds for all that are waited for after the first time.
func TestAKindThatCannotBeListedHoldsUpItsOwnControllerOnly(t *testing.T) {
	all := &counted{}
	each := &EachAlone{Cache: all}
	if each.WaitForCacheSync(t.Context()) {
		t.Error("nothing was read, and it is not waited for")
	}
	all.synced = true
	if !each.WaitForCacheSync(t.Context()) || all.asked != 2 {
		t.Error("all was read, and it is waited for")
	}
	all.synced = false
	if !each.WaitForCacheSync(t.Context()) || all.asked != 2 {
		t.Error("a kind that came later is waited for by all")
	}
}

func TestOnlyWhatTheAPIServerSaysMayBeOtherwiseInAMoment(t *testing.T) {
	_, listening := net.Listen("tcp", "127.0.0.1:70000")
	_, refused := http.Get("http://127.0.0.1:1")
	for _, c := range []struct {
		err  error
		from bool
	}{
		{fmt.Errorf("starting: %w", refused), true},
		{fmt.Errorf("starting: %w", apierrors.NewUnauthorized("who")), true},
		{fmt.Errorf("starting: %w", &meta.NoKindMatchError{}), true},
		{fmt.Errorf("starting: %w", listening), false},
		{errors.New("a flag"), false},
	} {
		if got := IsFromIt(c.err); got != c.from {
			t.Errorf("that it is from the API server: %t, of %v", got, c.err)
		}
	}
}
