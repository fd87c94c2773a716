package control

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A cut itself is played where there are nodes to cut off (TestNetwork).
func TestAConnectionEndsWhenThePeersKernelAcknowledgesNothing(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	trust := srv.Client().Transport.(*http.Transport).TLSClientConfig
	conn, err := dial(trust, bound)(t.Context(), "tcp", strings.TrimPrefix(srv.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.(*tls.Conn).NetConn().(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		if err != nil || got != int(unacknowledged.Milliseconds()) {
			t.Errorf("a packet may be unacknowledged for %d ms (%v)", got, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
