package instance

import (
	"container/list"
	"net"
	"sync"
)

// crowd is a listener that has so many connections open at most. Whoever comes when there are as
// many is let in, and the one that was let in first is closed: a flood of connections on which
// nothing is asked takes neither memory nor the place of a probe, which is answered within
// milliseconds.
type crowd struct {
	net.Listener
	most int

	mu   sync.Mutex
	open list.List // of *guest, the first that came in front
}

// guest is a connection of a crowd's.
type guest struct {
	net.Conn
	of *crowd
	at *list.Element
}

func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &guest{Conn: conn, of: c}
	c.mu.Lock()
	g.at = c.open.PushBack(g)
	var first *guest
	if c.open.Len() > c.most {
		first = c.open.Front().Value.(*guest)
	}
	c.mu.Unlock()
	if first != nil {
		_ = first.Close()
	}
	return g, nil
}

func (g *guest) Close() error {
	g.of.mu.Lock()
	g.of.open.Remove(g.at) // nothing, if it is gone
	g.of.mu.Unlock()
	return g.Conn.Close()
}
