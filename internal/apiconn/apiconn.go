// Package apiconn makes connections to the API server that end soon after the network
// between has been cut, and that are there again soon after it is mended. It knows sockets,
// and nothing of what is said over them.
//
// Without it a connection outlives an outage, and is of no use after it: the kernel sends
// what is unanswered again after twice the time each time, so that after an outage of half
// a minute nothing gets through for another half, and HTTP/2 asks only after 30 s of
// silence whether somebody is there. An instance that is to be promoted cannot take its
// lease in that time, and an operator cannot promote anybody.
package apiconn

import (
	"context"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
)

const (
	// unanswered is how long the API server's kernel may leave a packet unanswered. It
	// answers without the API server, however busy that is.
	unanswered = 3 * time.Second
	// silent is how long a connection may be silent before the other kernel is asked
	// whether it is there; it is asked askEvery until unanswered has passed.
	silent, askEvery = 2 * time.Second, time.Second
	// dialLimit bounds one attempt to connect: the kernel, too, tries again after ever
	// longer pauses.
	dialLimit = 2 * time.Second
	// patience is for how long attempts that nobody answers are made again. Who waits for
	// a connection gets it as soon as there is one. Who is told that there is none tries
	// again after ever longer pauses, as the watches of client-go do.
	patience = 30 * time.Second
)

// Bound returns the same way to the API server, by connections that end within five seconds
// of a cut. Those who share a client made of it share its connections.
func Bound(conf *rest.Config) *rest.Config {
	bound := rest.CopyConfig(conf)
	bound.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return persist(ctx, func(ctx context.Context) (net.Conn, error) {
			return dialer().DialContext(ctx, network, address)
		})
	}
	return bound
}

// persist tries until there is a connection, somebody refuses it, or patience or ctx ends.
func persist(ctx context.Context, try func(context.Context) (net.Conn, error)) (net.Conn, error) {
	until := time.Now().Add(patience)
	for {
		conn, err := try(ctx)
		if err == nil || ctx.Err() != nil || !isUnanswered(err) || !time.Now().Before(until) {
			return conn, err
		}
	}
}

// isUnanswered reports whether an attempt failed because it took its whole time without an answer.
// Any other error comes at once, and would come at once again.
func isUnanswered(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

func dialer() *net.Dialer {
	return &net.Dialer{
		Timeout: dialLimit,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: silent, Interval: askEvery, Count: int(unanswered / askEvery),
		},
		Control: func(_, _ string, conn syscall.RawConn) error {
			var err error
			if e := conn.Control(func(fd uintptr) { err = setUnanswered(int(fd)) }); e != nil {
				return e
			}
			return err
		},
	}
}

func setUnanswered(fd int) error {
	return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unanswered.Milliseconds()))
}
