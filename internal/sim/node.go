package sim

import "time"

// node runs containers, by its kubelet.
type node struct {
	w       *world
	name    string
	machine int
	pods    *watch
	// containers by Pod UID.
	containers map[string]*container
	order      []string
}

// container is one Pod's main container: the manager as PID 1, and its mysqld.
type container struct {
	pod      *podObject
	volume   *volume
	manager  *manager
	restarts int
	// ending since it was asked to stop.
	ending bool
	ended  bool
	ready  bool
}

// kubeletCallLimit bounds a kubelet's call to the API server.
const kubeletCallLimit = 5 * time.Second

func newNode(w *world, machine int) *node {
	n := &node{w: w, name: w.machines[machine].name, machine: machine, containers: map[string]*container{}}
	w.api.put(kindNode, n.name, &nodeObject{})
	n.boot()
	return n
}

// boot starts the kubelet.
func (n *node) boot() {
	n.containers, n.order = map[string]*container{}, nil
	n.pods = newWatch(n.w, kindPod, n.machine, 0, func(name string) {
		n.w.at(n.w.jitter(20*time.Millisecond), n.machine, n.sync)
	})
}

// powerOff ends everything that runs on the node at once. What was not on the disk is gone.
func (n *node) powerOff() {
	n.w.machines[n.machine].off = true
	for _, uid := range n.order {
		c := n.containers[uid]
		if c.manager != nil {
			c.manager.die(true)
		}
	}
	n.loseCaches()
	n.pods.stop()
	n.containers, n.order = map[string]*container{}, nil
	n.w.listen()
}

func (n *node) powerOn() {
	n.w.machines[n.machine].off, n.w.machines[n.machine].changed = false, n.w.now
	n.boot()
}

// sync makes the containers what the Pods ask for.
func (n *node) sync() {
	for _, name := range sortedKeys(n.pods.objects) {
		p := watched[podObject](n.pods, name)
		if p.node != n.name {
			continue
		}
		c := n.containers[p.uid]
		switch {
		case c == nil && !p.deleting && !p.started:
			n.create(p)
		case c == nil && p.deleting:
			n.finish(p) // nothing of it runs here any more
		case c == nil:
			n.create(p) // after a reboot
		case p.deleting && !c.ending:
			n.stop(c, n.w.conf.maxStop)
		}
	}
	for _, uid := range n.order {
		c := n.containers[uid]
		p := watched[podObject](n.pods, c.pod.instance)
		if (p == nil || p.uid != uid) && !c.ending { // deleted by force
			n.stop(c, 2*time.Second)
		}
	}
}

func (n *node) create(p *podObject) {
	c := &container{pod: p}
	n.containers[p.uid] = c
	n.order = append(n.order, p.uid)
	n.w.at(200*time.Millisecond+n.w.jitter(time.Second), n.machine, func() { n.mount(c) })
}

// mount waits for the volume.
func (n *node) mount(c *container) {
	if c.ending || n.containers[c.pod.uid] != c {
		return
	}
	v := n.w.api.volume(c.pod.instance)
	if v == nil || v.deleting || !v.data.attach(n.name) {
		n.w.at(time.Second, n.machine, func() { n.mount(c) })
		return
	}
	c.volume = v.data
	n.start(c)
}

func (n *node) start(c *container) {
	if c.ending || n.containers[c.pod.uid] != c {
		return
	}
	c.manager = newManager(n, c)
	n.report(c, func(p *podObject) { p.started = true })
}

// report writes a Pod's status; it is tried until it arrives or is out of date.
func (n *node) report(c *container, f func(*podObject)) {
	w := n.w
	w.call(n.machine, apiMachine, kubeletCallLimit, func(reply func(func())) {
		w.api.updatePod(c.pod.instance, c.pod.uid, f)
		reply(func() {})
	}, func() {
		if n.containers[c.pod.uid] == c {
			n.report(c, f)
		}
	})
}

// stop asks the container to end, and kills it when the time is up.
func (n *node) stop(c *container, grace time.Duration) {
	c.ending = true
	if c.manager == nil || c.manager.dead {
		n.ended(c)
		return
	}
	m := c.manager
	m.terminate()
	n.w.at(grace, n.machine, func() {
		if !m.dead {
			m.tell("is killed by the kubelet: the grace period is over")
			m.die(false)
		}
	})
}

// exited notes that the manager in a container has ended. The kubelet starts it again after a
// pause that grows, unless the Pod is going.
func (n *node) exited(c *container) {
	if n.w.machines[n.machine].off || n.containers[c.pod.uid] != c {
		return
	}
	if c.ending {
		n.ended(c)
		return
	}
	n.setReady(c, false)
	c.restarts++
	pause := min(time.Second<<min(c.restarts, 6), 5*time.Minute) / 2
	n.w.at(pause+n.w.jitter(time.Second), n.machine, func() { n.start(c) })
}

// ended ends a container for good. The kubelet reports of a Pod that is being deleted that it has
// ended, and then lets go of it and its volume.
func (n *node) ended(c *container) {
	if c.ended {
		return
	}
	c.ended = true
	w := n.w
	w.at(10*time.Millisecond+w.jitter(200*time.Millisecond), n.machine, func() {
		n.report(c, func(p *podObject) { p.ended, p.ready = p.deleting, false })
		w.at(100*time.Millisecond+w.jitter(time.Second), n.machine, func() {
			c.volume = nil
			n.forget(c.pod.uid)
			n.finish(c.pod)
		})
	})
}

func (n *node) forget(uid string) {
	delete(n.containers, uid)
	for i, o := range n.order {
		if o == uid {
			n.order = append(n.order[:i:i], n.order[i+1:]...)
			return
		}
	}
}

// finish removes the object of a Pod of which nothing runs.
func (n *node) finish(p *podObject) {
	w := n.w
	w.call(n.machine, apiMachine, kubeletCallLimit, func(reply func(func())) {
		if now := w.api.pod(p.instance); now != nil && now.uid == p.uid && now.deleting {
			w.api.updatePod(p.instance, p.uid, func(p *podObject) { p.ended = true })
			w.api.remove(kindPod, p.instance)
			w.api.finishVolume(p.instance)
		}
		reply(func() {})
	}, func() { n.finish(p) })
}

// setReady is the readiness probe's word.
func (n *node) setReady(c *container, ready bool) {
	if c.ready != ready {
		c.ready = ready
		n.report(c, func(p *podObject) { p.ready = c.ready })
	}
}
