package control

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestCallsShareTheirConnections: a TLS connection for each call was thousands a day elsewhere.
func TestCallsShareTheirConnections(t *testing.T) {
	var shaken atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}"))
	}))
	srv.TLS = &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"},
		VerifyConnection: func(tls.ConnectionState) error {
			shaken.Add(1)
			return nil
		}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	trust := srv.Client().Transport.(*http.Transport).TLSClientConfig
	c := NewClient(strings.TrimPrefix(srv.URL, "https://"), trust.Clone())
	t.Cleanup(c.Close)
	for range 10 {
		if _, err := c.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := shaken.Load(); n != 1 {
		t.Errorf("ten calls took %d handshakes", n)
	}
}
