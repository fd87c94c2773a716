//go:build !unix

package plugin

import (
	"golang.org/x/term"
	"k8s.io/client-go/tools/remotecommand"
)

// sizeOnce tells the size of a terminal at first: there is no signal of its
// changes here.
type sizeOnce chan remotecommand.TerminalSize

func watchSize(terminal int) (remotecommand.TerminalSizeQueue, func()) {
	q := make(sizeOnce, 1)
	if width, height, err := term.GetSize(terminal); err == nil {
		q <- remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)}
	}
	return q, func() { close(q) }
}

// Next waits for a change; nil ends the queue.
func (q sizeOnce) Next() *remotecommand.TerminalSize {
	size, open := <-q
	if !open {
		return nil
	}
	return &size
}
