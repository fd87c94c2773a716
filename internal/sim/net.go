package sim

import "time"

// Machines: the API server, two that an operator can run on, the clients', and
// the nodes behind them.
const (
	apiMachine = iota
	operatorMachine1
	operatorMachine2
	clientMachine
	firstNode
)

// machine is something with a clock of its own and a place in the network.
type machine struct {
	name  string
	clock clock
	// pausedUntil: nothing runs on it before, as when a virtual machine is moved.
	pausedUntil time.Duration
	// off: there is no power.
	off bool
	// changed is when what it reaches last changed.
	changed time.Duration
	// boots of its kernel.
	boots int
}

// link is one direction between two machines.
type link struct {
	cut   bool
	since time.Duration // when it was cut
	slow  time.Duration
	// waiting is what was sent into the cut and is sent again when it is mended.
	waiting []message
}

type message struct {
	sent time.Duration
	on   int
	do   func()
}

const (
	minDelay = 150 * time.Microsecond
	// resendFor is how long a sender goes on sending what is not answered.
	resendFor = 20 * time.Second
)

func (w *world) link(from, to int) *link { return &w.links[from*len(w.machines)+to] }

// reaches reports whether what is sent now arrives.
func (w *world) reaches(from, to int) bool {
	return from == to || !w.link(from, to).cut && !w.machines[from].off && !w.machines[to].off
}

func (w *world) connected(a, b int) bool { return w.reaches(a, b) && w.reaches(b, a) }

func (w *world) delay(from, to int) time.Duration {
	if from == to {
		return 20 * time.Microsecond
	}
	d := minDelay + time.Duration(w.rnd.Uint32()&0xfffff) // up to a millisecond more
	if w.rnd.Uint32()&63 == 0 {                           // a packet was lost
		d += 200 * time.Millisecond
	}
	return d + w.link(from, to).slow
}

// send has something happen on another machine a little later. What is sent into
// a cut may arrive late, when it is mended: a packet is sent again.
func (w *world) send(from, to int, do func()) {
	w.sendAfter(w.delay(from, to), from, to, do)
}

func (w *world) sendAfter(d time.Duration, from, to int, do func()) {
	sent := w.now
	w.at(d, to, func() {
		if w.reaches(from, to) {
			do()
			return
		}
		if l := w.link(from, to); l.cut && !w.machines[to].off && !w.machines[from].off {
			l.waiting = append(l.waiting, message{sent: sent, on: to, do: do})
		}
	})
}

// cut and mend change one direction.
func (w *world) cut(from, to int) {
	l := w.link(from, to)
	if from == to || l.cut {
		return
	}
	w.beforeNetworkChange()
	l.cut, l.since = true, w.now
	w.machines[from].changed, w.machines[to].changed = w.now, w.now
	w.listen()
}

func (w *world) mend(from, to int) {
	l := w.link(from, to)
	if !l.cut {
		return
	}
	w.beforeNetworkChange()
	l.cut = false
	w.machines[from].changed, w.machines[to].changed = w.now, w.now
	late := l.waiting
	l.waiting = nil
	for _, m := range late {
		if w.now-m.sent < resendFor {
			w.at(w.delay(from, to), m.on, m.do)
		}
	}
	w.afterMend()
}

// call is a request and its answer. serve runs at the other side and answers by
// calling reply with what is to happen back here. gaveUp runs when nothing came
// back in time; the request may have been carried out all the same, and may yet be.
func (w *world) call(from, to int, limit time.Duration, serve func(reply func(then func())), gaveUp func()) {
	over := false
	w.at(limit, from, func() {
		if !over {
			over = true
			gaveUp()
		}
	})
	w.send(from, to, func() {
		serve(func(then func()) {
			w.send(to, from, func() {
				if !over {
					over = true
					then()
				}
			})
		})
	})
}
