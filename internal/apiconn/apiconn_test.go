package apiconn

import (
	"context"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
)

// A cut itself is played end to end, where there are nodes to cut off
// (TestNetwork/APIServerOutOfReachOfAll).
func TestConnectionsAreBound(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conf := &rest.Config{Host: l.Addr().String()}
	conn, err := Bound(conf).Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ level, option, want int }{
		"TCP_USER_TIMEOUT": {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(3 * time.Second / time.Millisecond)},
		"SO_KEEPALIVE":     {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		"TCP_KEEPIDLE":     {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 2},
		"TCP_KEEPINTVL":    {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 1},
		"TCP_KEEPCNT":      {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
	} {
		if err := raw.Control(func(fd uintptr) {
			if got, err := unix.GetsockoptInt(int(fd), c.level, c.option); err != nil || got != c.want {
				t.Errorf("%s is %d (%v), wanted %d", name, got, err, c.want)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if conf.Dial != nil {
		t.Error("the configuration that was given has changed")
	}
}

func TestAttemptsThatNobodyAnswersAreMadeAgain(t *testing.T) {
	unanswered := &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		answers []error
		want    error
	}{
		"one is answered in the end":  {[]error{unanswered, unanswered, nil}, nil},
		"one is refused":              {[]error{unanswered, refused}, refused},
		"nobody answers for too long": {slices.Repeat([]error{unanswered}, 15), unanswered},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				_, err := persist(t.Context(), func(context.Context) (net.Conn, error) {
					time.Sleep(dialLimit)
					tries++
					return nil, c.answers[tries-1]
				})
				if err != c.want || tries != len(c.answers) {
					t.Errorf("%d attempts, then %v; wanted %d, then %v", tries, err, len(c.answers), c.want)
				}
			})
		})
	}
}

func TestAnAttemptEndsWithWhoWaitsForIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := persist(ctx, func(context.Context) (net.Conn, error) {
		cancel()
		return nil, &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	})
	if err == nil {
		t.Error("there is no connection, and no error")
	}
}
