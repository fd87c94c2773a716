package sim

import "time"

// event is something that happens at a moment of the world's own time.
type event struct {
	at  time.Duration
	seq uint64
	// on is the machine that must run for it; nowhere for none.
	on int
	do func()
}

// nowhere is no machine: the event happens whatever is paused.
const nowhere = -1

// queue is a heap of events by moment, then by the order in which they were made.
type queue struct {
	events []event
	seq    uint64
}

func (q *queue) before(i, j int) bool {
	a, b := &q.events[i], &q.events[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (q *queue) push(at time.Duration, on int, do func()) {
	q.seq++
	q.put(event{at: at, seq: q.seq, on: on, do: do})
}

func (q *queue) put(e event) {
	q.events = append(q.events, e)
	i := len(q.events) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !q.before(i, parent) {
			break
		}
		q.events[i], q.events[parent] = q.events[parent], q.events[i]
		i = parent
	}
}

func (q *queue) pop() event {
	top := q.events[0]
	last := len(q.events) - 1
	q.events[0] = q.events[last]
	q.events[last] = event{}
	q.events = q.events[:last]
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && q.before(child+1, child) {
			child++
		}
		if !q.before(child, i) {
			break
		}
		q.events[i], q.events[child] = q.events[child], q.events[i]
		i = child
	}
	return top
}
