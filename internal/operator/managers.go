package operator

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/version"
)

// replaceLimit bounds how long it may take to send a manager its successor.
const replaceLimit = 2 * time.Minute

var errStillThere = errors.New("it was accepted, and the former manager is still there: its log says why")

// ownBinary tells which binary the operator runs, as soon as that is known.
func ownBinary(log logr.Logger) func() core.Binary {
	var known atomic.Pointer[core.Binary]
	go func() {
		digest, err := version.Digest()
		if err != nil {
			log.Error(err, "cannot read the operator's own binary; managers are not replaced in place")
			return
		}
		known.Store(&core.Binary{Digest: digest, Platform: version.Platform})
	}()
	return func() core.Binary {
		if b := known.Load(); b != nil {
			return *b
		}
		return core.Binary{}
	}
}

// succession is the sending of the operator's own binary to the manager of one Pod, beside all else:
// it is large, and decisions do not wait for it. Core decides whether, and when again.
type succession struct {
	mu       sync.Mutex
	underWay bool
	last     error
	was      core.Successor
}

// replace begins to send the binary, unless that goes on already, and tells why it was
// not taken the last time. over is called when that is known.
func (s *succession) replace(send func() error, over func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.underWay {
		return s.last
	}
	begun := time.Now()
	if !s.was.Sent.IsZero() && s.last == nil { // nobody would ask again
		s.failed(errStillThere, begun)
	}
	s.underWay = true
	go func() {
		err := send()
		s.mu.Lock()
		defer over()
		defer s.mu.Unlock()
		if s.underWay, s.last, s.was.Sent = false, err, time.Now(); err != nil {
			s.failed(err, begun)
		}
	}()
	return s.last
}

// failed notes that it was not taken; the lock is held.
func (s *succession) failed(err error, begun time.Time) {
	var no *control.Refusal
	s.last = err
	s.was.Refused(err.Error(), errors.As(err, &no) && no.Reason == core.OrderBusy, begun)
}

// came is what came of it.
func (s *succession) came() core.Successor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.was
}

// ReplaceManager begins to send an instance the binary that this operator runs. The error is why it
// was not taken before.
func (s *Streams) ReplaceManager(namespace, instance string) error {
	st := s.stream(namespace, instance)
	if st == nil {
		return errNoStream
	}
	return st.succession().replace(func() error { return s.sendBinary(st) }, func() { s.wake(st.cluster) })
}

func (st *stream) succession() *succession {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.successor == nil {
		st.successor = &succession{}
	}
	return st.successor
}

func (s *Streams) sendBinary(st *stream) error {
	digest, err := version.Digest()
	if err != nil {
		return err
	}
	binary, err := version.Open()
	if err != nil {
		return err
	}
	defer func() { _ = binary.Close() }()
	ctx, cancel := context.WithTimeout(s.ctx, replaceLimit)
	defer cancel()
	return st.client.ReplaceManager(ctx, digest, binary)
}
