// Package logpipe keeps whoever logs from waiting for whoever reads the log. The output of a
// container is a pipe of 64 KiB: when the container runtime does not read it, the next line blocks
// its writer for ever, whatever locks it holds. For an instance manager that would be a primary that
// neither renews its lease nor isolates itself, for the operator one that leads and decides nothing.
package logpipe

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Room is how many bytes of lines may wait to be read; what comes then is dropped.
const Room = 1 << 20

// Writer passes lines on in their order, and has nobody wait for that. Lines that find no room are
// dropped and counted, and the count is a line of its own once there is room. An error of the output
// ends nothing either: there is nowhere to tell it.
type Writer struct {
	to io.Writer
	// told makes the line that says how many were dropped.
	told func(dropped int) []byte

	mu      sync.Mutex
	changed *sync.Cond
	waiting [][]byte
	size    int    // of what waits, the line that is being written included
	dropped int    // not told of yet
	lost    uint64 // dropped, all in all
	closed  bool
}

// New begins to pass on to an output what is written; told makes the line that says how many lines
// were dropped.
func New(to io.Writer, told func(dropped int) []byte) *Writer {
	w := &Writer{to: to, told: told}
	w.changed = sync.NewCond(&w.mu)
	go w.passOn()
	return w
}

// Write takes a line, or drops it. It never blocks and never fails.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.size+len(line) > Room {
		w.dropped++
		w.lost++
		return len(line), nil
	}
	if w.dropped > 0 {
		w.add(w.told(w.dropped))
		w.dropped = 0
	}
	w.add(append([]byte(nil), line...))
	w.changed.Broadcast()
	return len(line), nil
}

// Dropped is how many lines were dropped since the beginning.
func (w *Writer) Dropped() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// add has a line wait; the mutex is held.
func (w *Writer) add(line []byte) {
	w.waiting = append(w.waiting, line)
	w.size += len(line)
}

func (w *Writer) passOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.waiting) == 0 {
			if w.closed {
				return
			}
			w.changed.Wait()
		}
		line := w.waiting[0]
		w.waiting[0] = nil
		w.waiting = w.waiting[1:]
		w.mu.Unlock()
		_, _ = w.to.Write(line)
		w.mu.Lock()
		w.size -= len(line)
		w.changed.Broadcast()
	}
}

// Flush waits until the output has taken what was written before, and returns an error if that takes
// longer than it may. A process calls it before it ends, or becomes another.
func (w *Writer) Flush(within time.Duration) error {
	late := false
	defer time.AfterFunc(within, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		late = true
		w.changed.Broadcast()
	}).Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.size > 0 && !late {
		w.changed.Wait()
	}
	if w.size > 0 {
		return fmt.Errorf("the log is not read: %d bytes of it still wait after %s", w.size, within)
	}
	return nil
}

// Close is a Flush after which nothing is taken any more.
func (w *Writer) Close(within time.Duration) error {
	w.mu.Lock()
	w.closed = true
	w.changed.Broadcast()
	w.mu.Unlock()
	return w.Flush(within)
}
