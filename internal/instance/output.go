package instance

import (
	"os"
	"sync/atomic"
	"time"
)

// output is the pipe that mysqld prints into. Its reading can be stopped, for another
// reader to go on.
type output struct {
	pipe    *os.File
	stopped atomic.Bool
	// idle is sent to when reading has stopped, and again when it may go on.
	idle, again chan struct{}
	// ended is closed when all was read.
	ended chan struct{}
}

func newOutput(pipe *os.File) *output {
	return &output{pipe: pipe, idle: make(chan struct{}), again: make(chan struct{}), ended: make(chan struct{})}
}

// read reads until nobody can print any more.
func (o *output) read(log *errorLog) {
	for {
		log.read(o.pipe)
		if !o.stopped.Load() {
			_ = o.pipe.Close()
			close(o.ended)
			return
		}
		o.idle <- struct{}{}
		<-o.again
	}
}

// stop returns when nothing is read any more; what is printed stays in the pipe. The
// reading goes on when resume is called.
func (o *output) stop() (resume func()) {
	o.stopped.Store(true)
	_ = o.pipe.SetReadDeadline(time.Unix(1, 0))
	select {
	case <-o.ended:
		return func() {}
	case <-o.idle:
	}
	return func() {
		o.stopped.Store(false)
		_ = o.pipe.SetReadDeadline(time.Time{})
		o.again <- struct{}{}
	}
}

// fd is the pipe's file descriptor; it stays in the hands of the runtime's poller.
func (o *output) fd() int {
	fd := -1
	if conn, err := o.pipe.SyscallConn(); err == nil {
		_ = conn.Control(func(f uintptr) { fd = int(f) })
	}
	return fd
}
