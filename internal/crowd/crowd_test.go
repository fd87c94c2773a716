package crowd

import (
	"net"
	"net/http"
	"testing"

	"cnmsql.co/internal/crowd/crowdtest"
)

// TestAFloodOfConnectionsTakesNoMemoryAndNoProbesPlace holds of ports without TLS: anybody in the network can open
// connections there.
func TestAFloodOfConnectionsTakesNoMemoryAndNoProbesPlace(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := PlainServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil)
	in := Bound(l, 8)
	go func() { _ = server.Serve(in) }()
	t.Cleanup(func() { _ = server.Close() })
	crowdtest.Withstands(t, l.Addr().String(), "/livez", 8)
	in.mu.Lock()
	defer in.mu.Unlock()
	if n := in.open.Len(); n > 8 {
		t.Errorf("%d connections are kept", n)
	}
}
