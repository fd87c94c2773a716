//go:build unix

package plugin

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
	"k8s.io/client-go/tools/remotecommand"
)

// sizeQueue tells the size of a terminal at first and at each change.
type sizeQueue struct {
	terminal int
	changed  chan os.Signal
}

func watchSize(terminal int) (remotecommand.TerminalSizeQueue, func()) {
	q := &sizeQueue{terminal: terminal, changed: make(chan os.Signal, 1)}
	q.changed <- syscall.SIGWINCH
	signal.Notify(q.changed, syscall.SIGWINCH)
	return q, func() {
		signal.Stop(q.changed)
		close(q.changed)
	}
}

// Next waits for a change; nil ends the queue.
func (q *sizeQueue) Next() *remotecommand.TerminalSize {
	if _, open := <-q.changed; !open {
		return nil
	}
	width, height, err := term.GetSize(q.terminal)
	if err != nil {
		return nil
	}
	return &remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)}
}
