// Package endmark lets whoever runs a command in a Pod tell its end from the end of the connection. The
// command writes a line to standard error when it has succeeded: how much it has written to standard output.
// A connection that breaks off ends both streams as well, and the API server may report success then.
//
// It knows neither Kubernetes nor what is run.
package endmark

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// Flag has a command end with the mark.
const Flag = "end-mark"

const (
	// begins is in no text that people read.
	begins = '\x1e'
	format = string(begins) + "cnmsql-end %d\n"
	// longest is more than a mark can have.
	longest = 64
)

// Write has a command write to out and, when it succeeds, writes the mark to complaints.
func Write(out, complaints io.Writer, command func(out io.Writer) error) error {
	counted := &counter{Writer: out}
	if err := command(counted); err != nil {
		return err
	}
	_, err := fmt.Fprintf(complaints, format, counted.n)
	return err
}

type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}

// Filter passes on what a command complains, but for the mark.
type Filter struct {
	out io.Writer

	mu      sync.Mutex
	held    []byte // what may become a mark
	seen    bool
	written int64
}

// NewFilter returns a Filter that passes on to out.
func NewFilter(out io.Writer) *Filter { return &Filter{out: out} }

// Write passes on p, but for what may be a part of the mark.
func (f *Filter) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = append(f.held, p...)
	for len(f.held) > 0 {
		end := bytes.IndexByte(f.held, '\n')
		switch {
		case f.held[0] != begins:
			at := bytes.IndexByte(f.held, begins)
			if at < 0 {
				at = len(f.held)
			}
			if err := f.pass(at); err != nil {
				return 0, err
			}
		case end < 0 && len(f.held) < longest:
			return len(p), nil
		case end >= 0 && f.isMark(f.held[:end+1]):
			f.held = f.held[end+1:]
		default:
			if err := f.pass(1); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

func (f *Filter) pass(n int) error {
	_, err := f.out.Write(f.held[:n])
	f.held = f.held[n:]
	return err
}

// isMark reports whether line is one, and notes what it says.
func (f *Filter) isMark(line []byte) bool {
	var n int64
	if _, err := fmt.Sscanf(string(line), format, &n); err != nil || fmt.Sprintf(format, n) != string(line) {
		return false
	}
	f.seen, f.written = true, n
	return true
}

// Close passes on what did not become a mark.
func (f *Filter) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pass(len(f.held))
}

// Ended reports whether the mark was seen, and all arrived that the command had written by then.
func (f *Filter) Ended(arrived int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen && f.written == arrived
}
