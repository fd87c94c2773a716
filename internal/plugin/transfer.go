package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/remotecommand"

	"cnmsql.co/internal/endmark"
)

// carry runs a command in an instance's Pod between the streams of o. Its error keeps the exit code; it is
// nil only when all that was sent has been written here, and all that is here has been read.
//
// client-go logs the error of a local stream, goes on without it, and returns what the command itself ended
// with. For a connection that broke off it returns nil: SPDY has no other end of a stream, and between that
// and websockets the API server writes success. So the command is asked for an end mark.
func (s *session) carry(ctx context.Context, pod string, command []string, o remotecommand.StreamOptions) error {
	t := &transfer{pod: pod, reads: o.Stdin != nil}
	if !o.Tty {
		marks, err := s.marksItsEnd(ctx, pod, command)
		if err != nil {
			return err
		}
		if marks {
			t.mark = endmark.NewFilter(o.Stderr)
			command, o.Stderr = slices.Insert(slices.Clone(command), commandWords, "--"+endmark.Flag), t.mark
		} else {
			_, _ = fmt.Fprintln(o.Stderr, withoutMark(pod, command))
		}
	}
	run, err := s.executor(pod, command, streams{in: o.Stdin != nil, tty: o.Tty})
	if err != nil {
		return err
	}
	// What cannot be written here need not be sent on, which may take hours.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if o.Stdin != nil {
		o.Stdin = &source{o.Stdin, t}
	}
	out := &heedful{name: "standard output", Writer: o.Stdout, transfer: t, stop: stop}
	o.Stdout = out
	if o.Tty {
		o.Stderr = nil
	} else {
		o.Stderr = &heedful{name: "standard error", Writer: o.Stderr, transfer: t, stop: stop}
	}
	err = run.StreamWithContext(ctx, o)
	return t.explain(err, out.written.Load())
}

// commandWords are those of a command in a Pod before its flags: the binary, instance, and a verb.
const commandWords = 3

// marksItsEnd reports whether a command in a Pod knows the end mark. What runs there may be of an earlier
// release, and would refuse the flag after it was given what to read.
func (s *session) marksItsEnd(ctx context.Context, pod string, command []string) (bool, error) {
	run, err := s.executor(pod, append(slices.Clone(command[:commandWords]), "--help"), streams{})
	if err != nil {
		return false, err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	help, complaints := kept{stop: stop}, kept{stop: stop}
	err = run.StreamWithContext(running, remotecommand.StreamOptions{Stdout: &help, Stderr: &complaints})
	switch {
	case help.over || complaints.over:
		return false, explainExec(pod, false, errSaysTooMuch)
	case err != nil:
		return false, explainExec(pod, false, errors.Join(err, saidToo(complaints.String())))
	}
	if !bytes.Contains(help.said.Bytes(), []byte("--help")) {
		return false, explainExec(pod, false, errors.New("the connection broke off before the client was started, "+
			"and nothing was done"))
	}
	return bytes.Contains(help.said.Bytes(), []byte("--"+endmark.Flag)), nil
}

// withoutMark tells what an exit code is not worth.
func withoutMark(pod string, command []string) string {
	text := fmt.Sprintf("Note: %s runs an earlier release of cnmsql, which does not tell its end: if the connection "+
		"breaks off in between, the exit code is 0 all the same.", pod)
	if command[commandWords-1] == "dump" {
		text += " A dump is whole when its last line begins with: -- Dump completed"
	}
	return text
}

// transfer notes what is seen of a command's streams. They are used by goroutines of client-go, which may
// outlive it.
type transfer struct {
	pod string
	// reads: the command reads what is sent to it.
	reads bool
	// mark that the command was asked for; nil when it knows none.
	mark *endmark.Filter

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

// explain is the error of a transfer whose command ended with err, after so many bytes were written here.
func (t *transfer) explain(err error, written int64) error {
	if t.mark != nil {
		if failed := t.mark.Close(); failed != nil {
			t.breaks("writing to standard error", failed)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.broken != nil && isExit(err): // its code would hide what is wrong here
		return fmt.Errorf("%w: %s (the client in Pod %s: %v)", t.broken, t.isPartial(), t.pod, err)
	case t.broken != nil:
		return fmt.Errorf("%w: %s", t.broken, t.isPartial())
	case err == nil && t.mark != nil && !t.mark.Ended(written):
		return fmt.Errorf("the connection to Pod %s broke off: %s", t.pod, t.isPartial())
	}
	return explainExec(t.pod, t.full, err)
}

// isPartial tells what to do after a part. What a client has read is carried out.
func (t *transfer) isPartial() string {
	if t.reads {
		return "it is not known how much of the input was executed, and the output may be incomplete; check before " +
			"you repeat it"
	}
	return "the output is incomplete; repeat it"
}

// heedful passes on what a client writes, and notes when that fails, and its complaint that the server has no
// connection left.
type heedful struct {
	name string
	io.Writer
	*transfer
	stop    func()
	written atomic.Int64
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
	h.written.Add(int64(n))
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
