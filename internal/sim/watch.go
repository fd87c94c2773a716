package sim

import "time"

// watch is somebody's cached copy of one kind of object. It follows the log of
// the API server at its own pace: late, in bursts, and at times twice.
type watch struct {
	w    *world
	kind kind
	on   int // the machine of the watcher
	// objects and versions as the watcher knows them, up to the log's entry at.
	objects  map[string]any
	versions map[string]int64
	next     int
	synced   bool
	stopped  bool
	pending  bool
	changed  func(name string)
}

// watchLimit bounds the call by which a watch is begun.
const watchLimit = 4 * time.Second

// newWatch begins with a list that may be stale: an API server that has just come
// up answers from its own cache.
func newWatch(w *world, k kind, on int, stale time.Duration, changed func(name string)) *watch {
	v := &watch{w: w, kind: k, on: on, objects: map[string]any{}, versions: map[string]int64{}, changed: changed}
	w.api.watches[k] = append(w.api.watches[k], v)
	v.connect(stale)
	return v
}

// staleness of what a list returns: one of the API servers may be behind.
func (w *world) staleness() time.Duration {
	if w.oneIn(4) {
		return w.jitter(5 * time.Second)
	}
	return 0
}

func (v *watch) stop() {
	v.stopped = true
	all := v.w.api.watches[v.kind]
	for i, o := range all {
		if o == v {
			v.w.api.watches[v.kind] = append(all[:i:i], all[i+1:]...)
			return
		}
	}
}

// connect reads the objects, again and again until the API server answers.
func (v *watch) connect(stale time.Duration) {
	if v.stopped {
		return
	}
	w := v.w
	w.call(v.on, apiMachine, watchLimit, func(reply func(func())) {
		upTo := len(w.api.logs[v.kind])
		for upTo > 0 && stale > 0 && w.api.logs[v.kind][upTo-1].at > w.now-stale {
			upTo--
		}
		reply(func() {
			if !v.stopped {
				v.synced = true
				v.apply(upTo)
				v.notify()
			}
		})
	}, func() { w.at(time.Second, v.on, func() { v.connect(stale) }) })
}

// apply takes the log's entries up to one.
func (v *watch) apply(upTo int) {
	log := v.w.api.logs[v.kind]
	for ; v.next < upTo; v.next++ {
		c := log[v.next]
		if c.object == nil {
			delete(v.objects, c.name)
			delete(v.versions, c.name)
		} else {
			v.objects[c.name], v.versions[c.name] = c.object, c.rv
		}
		v.changed(c.name)
	}
}

// notify tells that there is something new. It arrives after a while, with all that came after it
// by then or without. Sometimes the last of what came before arrives again.
func (v *watch) notify() {
	if v.stopped || v.pending || !v.synced || v.next >= len(v.w.api.logs[v.kind]) {
		return
	}
	w := v.w
	v.pending = true
	lag := w.delay(apiMachine, v.on) + w.jitter(5*time.Millisecond)
	if w.oneIn(40) {
		lag += w.jitter(3 * time.Second)
	}
	w.at(lag, v.on, func() {
		v.pending = false
		if !w.reaches(apiMachine, v.on) {
			v.pending = true
			pause := 2 * time.Second
			if w.oneIn(4) { // it waits longer after each failure
				pause = 10 * time.Second
			}
			w.at(w.jitter(pause), v.on, func() { v.pending = false; v.notify() })
			return
		}
		upTo := len(w.api.logs[v.kind])
		if w.oneIn(8) {
			upTo = min(upTo, v.next+1)
		}
		if w.oneIn(30) && v.next > 0 { // again
			v.next--
		}
		v.apply(upTo)
		v.notify()
	})
}

func watched[T any](v *watch, name string) *T {
	o, _ := v.objects[name].(*T)
	return o
}
