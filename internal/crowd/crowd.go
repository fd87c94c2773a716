// Package crowd keeps those who ask a port on which anybody in the network may connect from taking the place of
// others, and memory. It knows connections and HTTP; it must not know what is asked.
package crowd

import (
	"container/list"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Most is how many connections a port has open: the kubelet, some Prometheus servers and people need a few.
const Most = 64

// Limits of a server without TLS. Whoever scrapes connects anew when its connection was closed.
const (
	headerBytes = 8 << 10
	headerTime  = 5 * time.Second
	writeTime   = 30 * time.Second
	idleTime    = 2 * time.Minute
)

// Listener is a listener that has so many connections open at most. Whoever comes when there are as
// many is let in, and the one that was let in first is closed: a flood of connections on which
// nothing is asked takes neither memory nor the place of a probe, which is answered within
// milliseconds.
type Listener struct {
	net.Listener
	most int

	mu   sync.Mutex
	open list.List // of *guest, the first that came in front
}

// Bound has a listener keep so many connections open at most.
func Bound(l net.Listener, most int) *Listener { return &Listener{Listener: l, most: most} }

// PlainServer is a server without TLS. It reads little, and waits for nobody for long.
func PlainServer(h http.Handler, errors *log.Logger) *http.Server {
	return &http.Server{Handler: h, ErrorLog: errors, MaxHeaderBytes: headerBytes, ReadHeaderTimeout: headerTime,
		WriteTimeout: writeTime, IdleTimeout: idleTime}
}

// ServeKnown answers those who bring a certificate that the server takes. So many connections at most are open whose
// handshake is not over: all others have shown who they are, and stay.
//
// The handshake is over when the server says that the connection is used: the callbacks of crypto/tls come before
// the caller has proven that it has the key of its certificate, which anybody can get.
func ServeKnown(s *http.Server, l net.Listener, most int) error {
	in := Bound(l, most)
	s.ConnState = in.note
	return s.ServeTLS(in, "", "")
}

// note has a connection that is used count no longer.
func (l *Listener) note(conn net.Conn, is http.ConnState) {
	secure, ok := conn.(*tls.Conn)
	if !ok || is != http.StateActive {
		return
	}
	if g, ok := secure.NetConn().(*guest); ok {
		l.forget(g)
	}
}

// guest is a connection of a Listener's.
type guest struct {
	net.Conn
	of *Listener
	at *list.Element
}

// Accept waits for the next connection, and closes the one that came first if there are too many.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &guest{Conn: conn, of: l}
	l.mu.Lock()
	g.at = l.open.PushBack(g)
	var first *guest
	if l.open.Len() > l.most {
		first = l.open.Front().Value.(*guest)
	}
	l.mu.Unlock()
	if first != nil {
		_ = first.Close()
	}
	return g, nil
}

// Close closes the connection, which counts no longer.
func (g *guest) Close() error {
	g.of.forget(g)
	return g.Conn.Close()
}

func (l *Listener) forget(g *guest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open.Remove(g.at) // nothing, if it is gone
}
