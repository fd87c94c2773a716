package writer

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"
)

// fakeServer answers after a fixed time; what it answers is set by the test. It runs in
// synctest's time, so that what the writer measures can be predicted to the millisecond.
type fakeServer struct {
	mu       sync.Mutex
	connects int
	dial     error // what connecting gives
	answer   error // what inserting gives
	latency  time.Duration
	seen     map[int][]int64
}

func (f *fakeServer) set(dial, answer error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dial, f.answer = dial, answer
}

func (f *fakeServer) connect(context.Context) (session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.connects++
	if f.dial != nil {
		return nil, f.dial
	}
	return &fakeSession{f, false}, nil
}

type fakeSession struct {
	server *fakeServer
	closed bool
}

func (s *fakeSession) insert(connection int, seq int64) error {
	time.Sleep(s.server.latency)
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.closed {
		return errors.New("insert on a closed session")
	}
	s.server.seen[connection] = append(s.server.seen[connection], seq)
	return s.server.answer
}

func (s *fakeSession) close() { s.closed = true }

func startFake(t *testing.T, connections int) (*Writer, *fakeServer) {
	return startFakeWith(t, connections, time.Millisecond)
}

func startFakeWith(t *testing.T, connections int, latency time.Duration) (*Writer, *fakeServer) {
	f := &fakeServer{latency: latency, seen: map[int][]int64{}}
	w := New(Config{Addr: "fake:1", Connections: connections})
	w.begin(t.Context(), f)
	return w, f
}

func TestHealthyEndpointShowsGapsOfTheIntervalOverTheConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := startFake(t, 5)
		time.Sleep(10*time.Second + 500*time.Microsecond)
		r := w.Stop()
		if got := r.LongestGap.Duration(); got != time.Millisecond {
			t.Errorf("longest gap %s, want 1ms: five connections at 5ms", got)
		}
		if r.Acknowledged < 9990 || r.Acknowledged > 10010 || r.Unknown+r.Refused+r.Unconnected != 0 {
			t.Errorf("got %+v", r.Snapshot)
		}
		if r.Latency != (Latency{time.Millisecond, time.Millisecond, time.Millisecond}) {
			t.Errorf("latency %+v", r.Latency)
		}
	})
}

func TestOutageIsMeasuredFromLastToFirstAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f := startFake(t, 4)
		time.Sleep(time.Second)
		killed := time.Now()
		f.set(io.ErrUnexpectedEOF, mysql.ErrInvalidConn)
		time.Sleep(3 * time.Second)
		back := time.Now()
		f.set(nil, nil)
		first, err := w.WaitAck(t.Context(), killed)
		if err != nil {
			t.Fatal(err)
		}
		if wait := first.Sub(back); wait <= 0 || wait > w.config.RetryPace+f.latency {
			t.Errorf("first acknowledgement %s after the server was back, want within the retry pace", wait)
		}
		time.Sleep(time.Second)
		gap := w.GapSince(killed)
		if gap.End != first || gap.Open || gap.Start.After(killed) || killed.Sub(gap.Start) > 5*time.Millisecond {
			t.Errorf("gap %s to %s, killed %s, first %s", gap.Start, gap.End, killed, first)
		}
		r := w.Stop()
		if r.Unknown != 4 || r.LongestGap != gap || r.Unconnected == 0 {
			t.Errorf("want one unknown for each connection, and the same gap: %+v", r.Snapshot)
		}
	})
}

func TestOutageThatDoesNotEndIsNotHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f := startFake(t, 4)
		time.Sleep(time.Second)
		killed := time.Now()
		f.set(io.ErrUnexpectedEOF, mysql.ErrInvalidConn)
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.WaitAck(ctx, killed); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("WaitAck: %v", err)
		}
		r := w.Stop()
		time.Sleep(time.Hour) // what comes after the stop is no outage
		if g := w.GapSince(killed); !g.Open || g.Duration() < 6*time.Second ||
			g.Duration() > 6100*time.Millisecond || r.LongestGap != g {
			t.Errorf("gap %s, open %t", g.Duration(), g.Open)
		}
	})
}

func TestReadOnlyServerIsLeftAndAnotherConnectionMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f := startFake(t, 1)
		time.Sleep(time.Second)
		f.set(nil, &mysql.MySQLError{Number: 1290, Message: "super_read_only"})
		time.Sleep(time.Second)
		f.set(nil, nil)
		time.Sleep(time.Second)
		r := w.Stop()
		if r.Refused != 50 || f.connects != 51 {
			t.Errorf("refused %d times on %d connections, want 50 (one in 20ms) on 51", r.Refused, f.connects)
		}
	})
}

func TestSequenceNumberIsUsedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f := startFake(t, 2)
		for range 5 {
			time.Sleep(100 * time.Millisecond)
			f.set(nil, mysql.ErrInvalidConn)
			time.Sleep(100 * time.Millisecond)
			f.set(nil, nil)
		}
		w.Stop()
		for connection, seqs := range f.seen {
			for i, seq := range seqs {
				if seq != int64(i+1) {
					t.Fatalf("connection %d sent %d as its statement %d", connection, seq, i+1)
				}
			}
		}
	})
}

func TestWaitAckCountsOnlyStatementsThatStartedAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f := startFake(t, 1)
		time.Sleep(100*time.Millisecond + 500*time.Microsecond) // in the middle of the statement sent at 100 ms
		now := time.Now()
		first, err := w.WaitAck(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		if want := w.record.started.Add(105*time.Millisecond + f.latency); !first.Equal(want) {
			t.Errorf("got %s after the start, want %s", first.Sub(w.record.started), want.Sub(w.record.started))
		}
		time.Sleep(time.Second)
		if again, err := w.WaitAck(t.Context(), now); err != nil || !again.Equal(first) {
			t.Errorf("asked later: %s, %v", again, err)
		}
		w.Stop()
		if _, err := w.WaitAck(t.Context(), time.Now()); !errors.Is(err, ErrStopped) {
			t.Errorf("asked after the stop: %v", err)
		}
	})
}

func TestStopAwaitsStatementsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := startFakeWith(t, 4, 700*time.Millisecond)
		time.Sleep(500 * time.Millisecond)
		if r := w.Stop(); r.Acknowledged != 4 || r.Unknown != 0 {
			t.Errorf("got %+v", r.Snapshot)
		}
	})
}

func TestWriterEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := New(Config{Addr: "fake:1"})
		w.begin(ctx, &fakeServer{seen: map[int][]int64{}})
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		before := w.Snapshot()
		time.Sleep(time.Minute)
		if after := w.Stop().Snapshot; after != before {
			t.Errorf("went on: %+v, then %+v", before, after)
		}
	})
}

func TestWriterThatWasNotStartedAnswers(t *testing.T) {
	w := New(Config{})
	if err := w.Start(t.Context()); err == nil {
		t.Error("started without an address")
	}
	if r := w.Stop(); r.Acknowledged != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := w.WaitAck(t.Context(), time.Now()); !errors.Is(err, ErrNotStarted) {
		t.Errorf("WaitAck: %v", err)
	}
	if _, err := w.Verify(t.Context(), nil); !errors.Is(err, ErrNotStarted) {
		t.Errorf("Verify: %v", err)
	}
}

func TestNamesThatWouldBreakOutOfTheStatementsAreRefused(t *testing.T) {
	for _, c := range []Config{
		{Addr: "a:1", Table: "rows"}, {Addr: "a:1", Table: "a.b`c"}, {Addr: "a:1", Run: "x'y"}, {Addr: "host"},
		{Addr: "a:1", Connections: -1},
	} {
		if err := c.withDefaults().validate(); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}
