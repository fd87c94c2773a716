package instance

import (
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

// answers waits until a report tells of mysqld: on a busy machine it may just have been silent for seconds.
func (w *world) answers(n *node) core.Report {
	w.t.Helper()
	return w.await(n, "told of as a server", func(r core.Report) bool { return r.Server != nil })
}

// demotes has a primary take no more writes, and tells what it holds then. It may have been killed for it: one
// that does not refuse writes in time is.
func (w *world) demotes(n *node) core.Report {
	w.t.Helper()
	mysqld := n.proc()
	r := w.order(n, control.Demote{Epoch: w.epoch() + 1})
	if !mysqld.running() {
		w.t.Fatalf("the demoted primary was killed: %+v", r)
	}
	if r.Server == nil { // it was asked once, and had a second
		r = w.answers(n)
	}
	return r
}
