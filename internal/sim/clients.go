package sim

import "time"

// client writes, one transaction after another, through the -rw Service; a
// stubborn one goes to whatever server it finds.
type client struct {
	w        *world
	r        *routing
	stubborn bool
	session  *session
	// waiting for an answer since asked.
	waiting bool
	asked   time.Duration
}

// answerLimit is how long a client waits for an answer.
const answerLimit = 10 * time.Second

// connectLimit bounds its attempt to connect.
const connectLimit = 5 * time.Second

// leisurely is the longest pause between two writes of a client that is not busy.
const leisurely = 10 * time.Second

// routing is what kube-proxy on the clients' machine knows.
type routing struct {
	route, pods *watch
}

func (w *world) startClients() {
	r := &routing{
		route: newWatch(w, kindRoute, clientMachine, 0, func(string) {}),
		pods:  newWatch(w, kindPod, clientMachine, 0, func(string) {}),
	}
	for i := range 4 {
		c := &client{w: w, r: r, stubborn: i == 3}
		w.clients = append(w.clients, c)
		w.at(time.Second, clientMachine, c.tick)
	}
}

// pace returns how long the client waits before its next write. Writes come in bursts.
func (c *client) pace() time.Duration {
	w := c.w
	if !w.busy() {
		return 2*time.Second + w.jitter(leisurely-2*time.Second)
	}
	if c.stubborn {
		return w.jitter(2 * time.Second)
	}
	return 10*time.Millisecond + w.jitter(400*time.Millisecond)
}

// tick writes once more, unless an answer is waited for.
func (c *client) tick() {
	w := c.w
	w.at(c.pace(), clientMachine, c.tick)
	if c.waiting && w.now-c.asked < answerLimit {
		return
	}
	if c.waiting { // what became of that write is not known
		c.hangUp()
	}
	c.waiting, c.asked = true, w.now
	if c.session != nil {
		c.write()
		return
	}
	s := c.find()
	if s == nil {
		c.waiting = false
		return
	}
	c.connect(s)
}

func (c *client) connect(s *mysqld) {
	w, asked := c.w, c.asked
	w.call(clientMachine, s.machine, connectLimit, func(reply func(func())) {
		s.do(func() {
			if !s.accepting {
				return
			}
			n := &session{s: s, client: c}
			s.sessions = append(s.sessions, n)
			reply(func() {
				if c.waiting && c.asked == asked {
					c.session = n
					c.write()
					return
				}
				c.leave(n)
			})
		})
	}, func() {
		if c.asked == asked {
			c.waiting = false
		}
	})
}

// find is where a new connection leads.
func (c *client) find() *mysqld {
	if c.stubborn {
		return c.findAny()
	}
	route := watched[routeObject](c.r.route, "rw")
	if route == nil {
		return nil
	}
	p := watched[podObject](c.r.pods, route.primary)
	if p == nil || !p.ready || p.deleting {
		return nil
	}
	for _, n := range c.w.nodes {
		if k := n.containers[p.uid]; k != nil && k.manager != nil && k.manager.proc.answers() {
			return k.manager.proc
		}
	}
	return nil
}

// findAny prefers a server that takes writes in an epoch of the past.
func (c *client) findAny() *mysqld {
	var best *mysqld
	for _, s := range c.w.servers() {
		if s.accepting && s.epoch != 0 && (best == nil || s.epoch < best.epoch) {
			best = s
		}
	}
	return best
}

func (c *client) write() {
	s, n, w := c.session.s, c.session, c.w
	took := time.Millisecond + w.jitter(3*time.Millisecond)
	if w.oneIn(150) {
		took = w.jitter(4 * time.Second)
	}
	w.send(clientMachine, s.machine, func() { s.do(func() { s.execute(n, took) }) })
}

// answered takes the server's answer. A success counts from now on; after anything else the client
// hangs up.
func (c *client) answered(a answer, said *saying) {
	c.waiting = false
	if a == writeDone {
		c.w.truth.heard(said)
		return
	}
	c.hangUp()
}

func (c *client) hangUp() {
	if n := c.session; n != nil {
		c.session = nil
		c.leave(n)
	}
}

func (c *client) leave(n *session) {
	c.w.send(clientMachine, n.s.machine, func() { n.s.do(func() { n.s.hangUp(n) }) })
}
