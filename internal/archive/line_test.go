package archive

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// slowLine is an S3 server that takes so many bytes of an object in a second, up to some of them.
type slowLine struct {
	perSecond, most int

	mu    sync.Mutex
	there map[string]bool
}

func (s *slowLine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	is := s.there[r.URL.Path]
	s.mu.Unlock()
	switch {
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
	case is:
		w.WriteHeader(http.StatusPreconditionFailed)
		_, _ = io.WriteString(w, "<Error><Code>PreconditionFailed</Code></Error>")
	default:
		if s.takes(r) {
			s.mu.Lock()
			s.there[r.URL.Path] = true
			s.mu.Unlock()
		}
	}
}

// takes reads an object; false if it came to an end before that did.
func (s *slowLine) takes(r *http.Request) bool {
	piece := make([]byte, s.perSecond/20)
	for got := 0; ; {
		n, err := io.ReadFull(r.Body, piece)
		if got += n; err != nil {
			return int64(got) == r.ContentLength
		}
		if got >= s.most {
			<-r.Context().Done() // which the test ends
			return false
		}
		time.Sleep(time.Second / 20)
	}
}

// over is a store behind such a line.
func (s *slowLine) over(t *testing.T) store.Store {
	t.Helper()
	s.there = map[string]bool{}
	server := httptest.NewUnstartedServer(s)
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		must(t, c.(*net.TCPConn).SetReadBuffer(16<<10))
		return ctx
	}
	server.Start()
	t.Cleanup(server.CloseClientConnections)
	opened, err := store.Open(storetest.Configure(t, store.Config{Endpoint: server.URL, Bucket: "bucket"},
		map[string]string{store.FileAccessKeyID: "id", store.FileSecretKey: "secret"}))
	must(t, err)
	return opened
}

// putOver stores a part of 6 MiB that does not compress, each attempt of which has so long without
// progress.
func putOver(t *testing.T, s *slowLine, limit, within time.Duration) (*Shipper, error) {
	t.Helper()
	ship, err := NewShipper(Config{Store: s.over(t), Prefix: prefix, Cluster: "uid", Epoch: 1, May: allowed,
		PutTimeout: limit})
	must(t, err)
	ship.sequence = 1
	raw := make([]byte, 6<<20)
	_, _ = rand.Read(raw)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	go func() { // nobody waits for the next attempt
		for ctx.Err() == nil && ship.Status().Failure == nil {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	return ship, ship.put(ctx, facts.Part{Cluster: "uid", Epoch: 1, Sequence: 1}, raw)
}

// TestASlowLineTakesAPart though it takes several times as long as a store may do nothing.
func TestASlowLineTakesAPart(t *testing.T) {
	ship, err := putOver(t, &slowLine{perSecond: 1 << 20, most: 8 << 20}, 2*time.Second, time.Minute)
	must(t, err)
	if s := ship.Status(); s.Failure != nil {
		t.Errorf("an attempt failed: %v", s.Failure)
	}
}

// TestAnUploadThatStopsIsGivenUp in the middle of a part.
func TestAnUploadThatStopsIsGivenUp(t *testing.T) {
	begun := time.Now()
	ship, err := putOver(t, &slowLine{perSecond: 1 << 20, most: 1 << 20}, 2*time.Second, time.Minute)
	failure := ship.Status().Failure
	if err == nil || failure == nil || !strings.Contains(failure.Error(), "nothing") {
		t.Errorf("%v, and before that %v", err, failure)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it was given up after %s", took)
	}
}
