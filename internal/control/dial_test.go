package control

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestHandshakesTakeTurns(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	trust := srv.Client().Transport.(*http.Transport).TLSClientConfig
	connect := func(ctx context.Context) error {
		conn, err := dial(trust, bound)(ctx, "tcp", strings.TrimPrefix(srv.URL, "https://"))
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	for range cap(turns) {
		turns <- struct{}{}
	}
	free := func() {
		for len(turns) > 0 {
			<-turns
		}
	}
	t.Cleanup(free)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := connect(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody has given a turn back, and it ends with %v", err)
	}
	begun, given := time.Now(), time.AfterFunc(100*time.Millisecond, func() { <-turns })
	defer given.Stop()
	if err := connect(t.Context()); err != nil || time.Since(begun) > turnLimit {
		t.Errorf("one was given back, and after %s it ends with %v", time.Since(begun), err)
	}
	turns <- struct{}{}
	if begun := time.Now(); connect(t.Context()) != nil || time.Since(begun) < turnLimit {
		t.Errorf("none is given back, and it is made after %s, or not", time.Since(begun))
	}
	free()
	if err := connect(t.Context()); err != nil || len(turns) != 0 {
		t.Errorf("%d turns are not given back; %v", len(turns), err)
	}
}

func TestAPeerThatDoesNotGreetIsGivenUp(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = dial(&tls.Config{}, bound)(ctx, "tcp", silent.Addr().String())
	if !errors.Is(err, context.DeadlineExceeded) || len(turns) != 0 {
		t.Errorf("it ends with %v; %d turns are not given back", err, len(turns))
	}
}
