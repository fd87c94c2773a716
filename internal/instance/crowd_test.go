package instance

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// TestAFloodOfConnectionsTakesNoMemoryAndNoProbesPlace: anybody in the network can open them on
// the ports without TLS.
func TestAFloodOfConnectionsTakesNoMemoryAndNoProbesPlace(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute}
	in := &crowd{Listener: l, most: 8}
	go func() { _ = server.Serve(in) }()
	t.Cleanup(func() { _ = server.Close() })
	var flood []net.Conn
	for i := range 100 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if i%2 == 0 { // half of them ask something, and stay
			_, _ = fmt.Fprint(conn, "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
		}
		flood = append(flood, conn)
	}
	probe := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	if _, err := probe.Get("http://" + l.Addr().String() + "/livez"); err != nil {
		t.Errorf("a probe is not answered: %v", err)
	}
	open := 0
	for _, conn := range flood {
		if isOpen(conn) {
			open++
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if n := in.open.Len(); n > 8 || open > 8 {
		t.Errorf("%d connections are kept, %d are open", n, open)
	}
}

// isOpen: nobody has closed it within a moment, whatever was answered on it.
func isOpen(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	_, err := io.Copy(io.Discard, bufio.NewReader(conn))
	return errors.Is(err, os.ErrDeadlineExceeded)
}
