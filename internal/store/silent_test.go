package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"cnmsql.co/internal/store"
)

func TestASilentStoreIsLeft(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	s, _ := faulty(t, forSilence, func(http.ResponseWriter, *http.Request) { <-over })
	t.Cleanup(func() { close(over) }) // before the server is closed
	begun := time.Now()
	for method, err := range everything(t.Context(), s) {
		if !errors.Is(err, store.Stalled) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if took := time.Since(begun); took < forSilence.silence || took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestASilentStoreEndsARead(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	s, _ := faulty(t, forHalf, func(w http.ResponseWriter, _ *http.Request) {
		head(w, "100")
		_, _ = w.Write(make([]byte, 50))
		w.(http.Flusher).Flush()
		<-over
	})
	t.Cleanup(func() { close(over) })
	n, err := read(t, s)
	mustFail(t, err, store.Stalled)
	same(t, n, 50)
}

func TestASlowStoreIsNotSilent(t *testing.T) {
	t.Parallel()
	s, _ := faulty(t, forSlow, func(w http.ResponseWriter, _ *http.Request) {
		head(w, "30")
		for range 30 {
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			time.Sleep(forSlow.silence / 20)
		}
	})
	n, err := read(t, s)
	must(t, err)
	same(t, n, 30)
}

func TestASlowReaderIsNoSilentStore(t *testing.T) {
	t.Parallel()
	s, _ := faulty(t, forSlow, func(w http.ResponseWriter, _ *http.Request) {
		head(w, fmt.Sprint(32<<20)) // more than fits between us
		_, _ = w.Write(make([]byte, 32<<20))
	})
	r, err := s.Get(t.Context(), "key")
	must(t, err)
	time.Sleep(forSlow.silence * 3 / 2)
	n, err := io.Copy(io.Discard, r)
	must(t, errors.Join(err, r.Close()))
	same(t, n, int64(32<<20))
}

func TestALimitedWriterIsNoSilentStore(t *testing.T) {
	t.Parallel()
	s, _ := faulty(t, forSlow, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	// 4 KiB at once, then the next after four seconds, which is longer than a silence.
	must(t, store.Limited(s, 1<<10).Put(t.Context(), "key", make([]byte, 8<<10)))
}

// TestASlowLineIsNoSilentStore: it takes 1 MiB in a second, with little room on the other side; but
// more than some packets of the loopback, which the kernel would drop otherwise, and send again after
// longer and longer pauses.
func TestASlowLineIsNoSilentStore(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for piece := make([]byte, 32<<10); ; time.Sleep(time.Second / 32) {
			if _, err := io.ReadFull(r.Body, piece); err != nil {
				return
			}
		}
	}))
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		must(t, c.(*net.TCPConn).SetReadBuffer(128<<10))
		return ctx
	}
	server.Start()
	t.Cleanup(server.Close)
	s := openFor(t, patience{2 * time.Second, time.Second}, configure(t, server.URL))
	var moved atomic.Int64
	ctx := store.WithProgress(t.Context(), func() { moved.Add(1) })
	must(t, s.Put(ctx, "key", make([]byte, 8<<20)))
	if n := moved.Load(); n < 20 {
		t.Errorf("it has told of progress %d times", n)
	}
}

// head begins an object.
func head(w http.ResponseWriter, length string) {
	w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Length", length)
}

// read reads an object to its end or error.
func read(t *testing.T, s store.Store) (int, error) {
	t.Helper()
	r, err := s.Get(t.Context(), "key")
	must(t, err)
	body, err := io.ReadAll(r)
	_ = r.Close()
	return len(body), err
}

// leavesWhoIsSilent: each call ends although the server does not answer.
func leavesWhoIsSilent(t *testing.T, server faultyStore) {
	t.Helper()
	over := make(chan struct{})
	s, _ := server(t, forSilence, func(http.ResponseWriter, *http.Request) { <-over })
	t.Cleanup(func() { close(over) }) // before the server is closed
	for method, err := range everything(t.Context(), s) {
		if !errors.Is(err, store.Stalled) {
			t.Errorf("%s: %v", method, err)
		}
	}
}
