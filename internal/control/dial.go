package control

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"

	"cnmsql.co/internal/core"
)

const (
	dialLimit      = time.Second
	handshakeLimit = 3 * time.Second
	// turnLimit is how long a handshake waits for its turn: some of those before it may be
	// with peers that do not answer.
	turnLimit = 2 * time.Second
	// unacknowledged is how long the kernel of a peer may leave a packet unacknowledged before
	// the connection ends. It acknowledges without the peer, however busy that is; what is lost
	// once is sent again after a fifth of a second, and after two fifths.
	unacknowledged = core.CutAfter - core.AskAfter
)

// turns bound how many handshakes a process makes at a time. They cost it more than all else
// that it does with a connection. When thousands of connections are lost at once, as they are
// when its node stood still for a moment, so many handshakes at a time would hold each other up
// until none is made in time, and begin again, and go on like this.
var turns = make(chan struct{}, 16*runtime.GOMAXPROCS(0))

// takeTurn returns when there is a turn, or there was none for too long.
func takeTurn(ctx context.Context) (giveBack func(), err error) {
	late := time.NewTimer(turnLimit)
	defer late.Stop()
	select {
	case turns <- struct{}{}:
		return func() { <-turns }, nil
	case <-late.C:
		return func() {}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dialer makes a connection of its own for each call.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dial connects to a peer, over TLS; connected is given the connection before anything is said
// over it.
func dial(conf *tls.Config, connected func(net.Conn) error) dialer {
	conf = conf.Clone()
	conf.NextProtos = []string{"h2", "http/1.1"}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if err := connected(conn); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		giveBack, err := takeTurn(ctx)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		defer giveBack()
		ctx, cancel := context.WithTimeout(ctx, handshakeLimit)
		defer cancel()
		safe := tls.Client(conn, forHost(conf, address))
		if err := safe.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("TLS handshake with %s: %w", address, err)
		}
		return safe, nil
	}
}

// forHost has a certificate of the host expected where no name is set.
func forHost(conf *tls.Config, address string) *tls.Config {
	if conf.ServerName != "" {
		return conf
	}
	own := conf.Clone()
	own.ServerName, _, _ = net.SplitHostPort(address)
	return own
}
