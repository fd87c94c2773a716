package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"k8s.io/client-go/tools/remotecommand"
)

// carry runs a command in an instance's Pod between the streams of o. Its error keeps the exit code; it is
// nil only when all that was sent has been written here, and all that is here has been read.
//
// client-go logs the error of a local stream, goes on without it, and returns what the command itself ended
// with.
func (s *session) carry(ctx context.Context, pod string, command []string, o remotecommand.StreamOptions) error {
	run, err := s.executor(pod, command, streams{in: o.Stdin != nil, tty: o.Tty})
	if err != nil {
		return err
	}
	// What cannot be written here need not be sent on, which may take hours.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	t := &transfer{}
	if o.Stdin != nil {
		o.Stdin = &source{o.Stdin, t}
	}
	o.Stdout = &heedful{"standard output", o.Stdout, t, stop}
	if o.Tty {
		o.Stderr = nil
	} else {
		o.Stderr = &heedful{"standard error", o.Stderr, t, stop}
	}
	return t.explain(pod, run.StreamWithContext(ctx, o))
}

// transfer notes what is seen of a command's streams. They are used by goroutines of client-go, which may
// outlive it.
type transfer struct {
	mu sync.Mutex
	// broken is the first error of a stream on this side.
	broken error
	// full: the client complained that the server has no connection left.
	full bool
}

func (t *transfer) breaks(doing string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken == nil {
		t.broken = fmt.Errorf("%s: %w", doing, err)
	}
}

// explain is the error of a transfer whose command ended with err.
func (t *transfer) explain(pod string, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.broken == nil:
		return explainExec(pod, t.full, err)
	case isExit(err): // whose code would hide what is wrong here
		return fmt.Errorf("%w: only a part went through; do it again (the client in Pod %s: %v)", t.broken, pod, err)
	}
	return fmt.Errorf("%w: only a part went through; do it again", t.broken)
}

// heedful passes on what a client writes, and notes when that fails, and its complaint that the server has no
// connection left.
type heedful struct {
	name string
	io.Writer
	*transfer
	stop func()
}

// Write passes on p, and notes MySQL's error 1040 (too many connections) in it, as mysql or mysqldump says
// it.
func (h *heedful) Write(p []byte) (int, error) {
	for _, told := range []string{"ERROR 1040 ", "Got error: 1040:"} {
		if bytes.Contains(p, []byte(told)) {
			h.mu.Lock()
			h.full = true
			h.mu.Unlock()
		}
	}
	n, err := h.Writer.Write(p)
	if err != nil {
		h.breaks("writing to "+h.name, err)
		h.stop()
	}
	return n, err
}

// source passes on what a client is to read, and notes when it cannot be read to its end: the client takes
// that for the end.
type source struct {
	io.Reader
	*transfer
}

// Read passes on what is there.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.breaks("reading standard input", err)
	}
	return n, err
}
