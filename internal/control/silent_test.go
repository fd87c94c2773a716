package control

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// piped serves a handler over pipes, and returns a client of it: unlike a network, they let the clock of synctest
// go on. There is no TLS, of which a stream knows nothing.
func piped(t *testing.T, h http.Handler) *Client {
	t.Helper()
	l := make(pipes)
	srv := &http.Server{Handler: h}
	go func() { _ = srv.Serve(l) }()
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case l <- theirs:
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	t.Cleanup(func() { tr.CloseIdleConnections(); _ = srv.Close() })
	return &Client{base: "http://instance", http: &http.Client{Transport: tr}, tr: tr, silence: silenceLimit}
}

// pipes are those that a server has yet to accept.
type pipes chan net.Conn

func (l pipes) Accept() (net.Conn, error) {
	if conn, open := <-l; open {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (l pipes) Close() error { close(l); return nil }

func (l pipes) Addr() net.Addr { return &net.UnixAddr{} }

// hanging is an instance that says these snapshots, and then hangs: its connection stands,
// and answers pings.
type hanging struct{ talker }

func (in hanging) Watch(ctx context.Context, send func(Snapshot) error) error {
	if err := in.talker.Watch(ctx, send); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestAManagerThatHangsIsNotBelievedForEver(t *testing.T) {
	for name, words := range map[string][]Snapshot{"before its first word": nil, "after a word": {says(2, "one")}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, began := piped(t, status(hanging{talker{says: words}})), time.Now()
				heard := 0
				err := c.Watch(t.Context(), func(Snapshot) { heard++ })
				if err == nil || !strings.Contains(err.Error(), "said nothing for 5s, though its connection stands") ||
					time.Since(began) != silenceLimit {
					t.Errorf("after %s the stream ended so: %v", time.Since(began), err)
				}
				if heard != len(words) {
					t.Errorf("%d words were heard", heard)
				}
			})
		})
	}
}

func TestWhoListensSlowlyDoesNotTakeAManagerForSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := piped(t, status(talker{says: []Snapshot{says(2, "one"), says(3, "two"), says(4, "three")}}))
		heard := 0
		err := c.Watch(t.Context(), func(Snapshot) {
			heard++
			time.Sleep(2 * silenceLimit)
		})
		if heard != 3 || strings.Contains(err.Error(), "nothing") {
			t.Errorf("%d words were heard, and the stream ended so: %v", heard, err)
		}
	})
}

func TestAStreamThatIsNotWantedAnyMoreEndsSo(t *testing.T) {
	c, _ := stream(t, status(hanging{talker{says: []Snapshot{says(2, "one")}}}))
	ctx, cancel := context.WithCancel(t.Context())
	err := c.Watch(ctx, func(Snapshot) { cancel() })
	if err == nil || strings.Contains(err.Error(), "nothing") {
		t.Errorf("the stream ended so: %v", err)
	}
}
