// Package crowdtest floods a port with connections, for tests of those that listen.
package crowdtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// Flood opens so many connections to an address, asks nothing on half of them and something on the others, and
// leaves them open until the test ends.
func Flood(t *testing.T, address string, n int) (flood []net.Conn) {
	t.Helper()
	for i := range n {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if i%2 == 0 {
			_, _ = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		}
		flood = append(flood, conn)
	}
	return flood
}

// StillOpen counts the connections that nobody has closed within a moment, whatever was answered on them.
func StillOpen(flood []net.Conn) (open int) {
	is := make(chan bool)
	for _, conn := range flood {
		go func() {
			_ = conn.SetReadDeadline(time.Now().Add(time.Second))
			_, err := io.Copy(io.Discard, conn)
			is <- errors.Is(err, os.ErrDeadlineExceeded)
		}()
	}
	for range flood {
		if <-is {
			open++
		}
	}
	return open
}

// Withstands holds that a server without TLS at this address keeps no more than most connections of a flood, answers
// others meanwhile at this path, and reads no header of 13 KiB.
func Withstands(t *testing.T, address, path string, most int) {
	t.Helper()
	flood := Flood(t, address, 3*most)
	ask := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(cookie string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Cookie", cookie)
		answer, err := ask.Do(r)
		if err != nil {
			t.Errorf("%s%s is not answered: %v", address, path, err)
			return 0
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	if code := get("short"); code != http.StatusOK {
		t.Errorf("%s%s is answered with %d", address, path, code)
	}
	// More than 8 KiB, and the 4 KiB that Go adds to any limit.
	if code := get(strings.Repeat("a", 13<<10)); code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 13 KiB is answered with %d", code)
	}
	if open := StillOpen(flood); open > most {
		t.Errorf("%d connections of a flood are open at %s", open, address)
	}
}
