package sim

import (
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// worker is a manager's one worker: it decides and acts, and does what orders
// ask, one after the other.
type worker struct {
	m     *manager
	busy  bool
	woken bool
	jobs  []func(done func())
	// interrupt ends what the worker waits for; nil when it cannot be ended.
	interrupt func()
	before    string
	runs      int // counts actions, so that one that was given up does not go on
}

// trouble is an action that failed, and when it may be tried again.
type trouble struct {
	actions, err string
	count        int
	retryAt      time.Duration
}

const interrupted = "interrupted by an order"

// wake has the worker look again, as soon as it is free.
func (k *worker) wake() {
	if k.woken || k.m.dead {
		return
	}
	k.woken = true
	if !k.busy {
		k.m.at(50*time.Microsecond, k.run)
	}
}

// submit has the worker do something next; what it waits for is given up.
func (k *worker) submit(do func(done func())) {
	k.jobs = append(k.jobs, do)
	if stop := k.interrupt; stop != nil {
		k.interrupt = nil
		stop()
	}
	if !k.busy {
		k.m.at(50*time.Microsecond, k.run)
	}
}

func (k *worker) run() {
	if k.busy || k.m.dead {
		return
	}
	if len(k.jobs) > 0 {
		job := k.jobs[0]
		k.jobs = k.jobs[1:]
		k.busy = true
		once := false
		job(func() {
			if !once && !k.m.dead {
				once = true
				k.free()
				k.woken = true
				k.before = ""
				k.run()
			}
		})
		return
	}
	if !k.woken {
		return
	}
	k.woken, k.before = false, ""
	k.step()
}

func (k *worker) free() { k.busy, k.interrupt = false, nil }

// step decides and acts until there is nothing to do, or nothing new.
func (k *worker) step() {
	m := k.m
	m.verifyClone()
	f := m.facts()
	d := m.w.decide(m, f)
	key := d.Key()
	m.heed(d, key)
	if key == "" || key == k.before || m.pauses(key) {
		if len(k.jobs) > 0 || k.woken {
			m.at(50*time.Microsecond, k.run)
		}
		return
	}
	k.before, k.busy = key, true
	k.act(d.Actions, key)
}

// decide asks the real agent, through the seams of a mutation.
func (w *world) decide(m *manager, f *agent.Facts) agent.Decision {
	d := agent.Decide(f)
	if w.mut.Decision != nil {
		w.mut.Decision(f, &d)
	}
	w.cover.count("state", string(d.State)+" "+string(d.Reason))
	w.truth.checkDecision(m, &d)
	return d
}

// heed publishes a decision.
func (m *manager) heed(d agent.Decision, key string) {
	if m.w.story.on && (m.decision.State != d.State || m.decision.Reason != d.Reason) {
		m.tell("%s %s %s", d.State, d.Reason, d.Message)
	}
	m.decision = d
	m.wasFenced = d.WasFenced(m.wasFenced)
	if t := m.trouble; t != nil && t.actions != key {
		m.trouble = nil
	}
	m.announce()
}

func (m *manager) pauses(key string) bool {
	return m.trouble != nil && m.trouble.actions == key && m.w.now < m.trouble.retryAt
}

// act carries out actions in their order and stops at the first that fails.
func (k *worker) act(actions []agent.Action, key string) {
	m := k.m
	if len(k.jobs) > 0 { // an order waits
		k.free()
		k.woken = true
		m.at(50*time.Microsecond, k.run)
		return
	}
	a := actions[0]
	if _, last := a.(agent.Exit); last {
		m.exit()
		return
	}
	if m.w.story.on {
		m.tellAction(a)
	}
	m.w.cover.count("action", nameOf(a))
	once := false
	k.runs++
	done := func(err string) {
		if once || m.dead {
			return
		}
		once, k.interrupt = true, nil
		k.runs++
		switch {
		case err != "":
			k.free()
			m.noteTrouble(key, err)
		case len(actions) > 1:
			k.act(actions[1:], key)
		default:
			m.trouble = nil
			k.free()
			m.poll()
			k.step()
		}
	}
	k.interrupt = func() { done(interrupted) }
	m.do(a, done)
}

// noteTrouble remembers what failed, and tries it again a little later each time.
func (m *manager) noteTrouble(key, err string) {
	k := &m.worker
	if err == interrupted {
		k.woken = true
		m.at(50*time.Microsecond, k.run)
		return
	}
	t := m.trouble
	if t == nil || t.actions != key {
		t = &trouble{actions: key}
	}
	next := &trouble{actions: key, err: err, count: t.count + 1}
	next.retryAt = m.w.now + agent.RetryAfter(t.count)
	m.trouble = next
	if m.w.story.on {
		m.tell("failed (%d): %s", next.count, err)
	}
	m.announce()
	if len(k.jobs) > 0 || k.woken {
		m.at(50*time.Microsecond, k.run)
	}
	m.armPoll()
}

// do carries out one action; done is called when it is over, with what failed.
func (m *manager) do(a agent.Action, done func(err string)) {
	switch a := a.(type) {
	case agent.MakeData:
		m.makeData(a.From)
		done("")
	case agent.StartServer:
		m.startServer(done)
	case agent.StopServer:
		m.stopServer(a, done)
	case agent.Abort:
		m.abortActivity(done)
	case agent.CloneFrom:
		m.cloneFrom(a.Donor)
		done("")
	case agent.Demote:
		m.worker.interrupt = nil
		m.stopWrites(done)
	case agent.AcquireLease:
		m.acquireLease(a.Epoch, done)
	case agent.ConfirmPromotion:
		m.confirmPromotion(a.Epoch, done)
	case agent.BecomePrimary:
		m.becomePrimary(a, done)
	case agent.BecomeFollower:
		m.becomeFollower(a, done)
	case agent.AskPrimary:
		m.askPrimary(a)
		done("")
	case agent.DropAcks:
		m.worker.interrupt = nil
		m.statement(agent.DropAcksLimit, func(s *mysqld) {
			if len(s.semi.waiting) == 0 { // all are clients'
				s.requireAcks(0, 0)
			}
		}, done)
	case agent.AskWord:
		m.askWord()
		done("")
	case agent.AskHeld:
		m.askHeld(a)
		done("")
	case agent.CutTail:
		m.cutTail(a)
		done("")
	default:
		m.doReplication(a, done)
	}
}

func (m *manager) doReplication(a agent.Action, done func(err string)) {
	switch a := a.(type) {
	case agent.StopReceiving:
		m.statement(agent.StatementLimit, func(s *mysqld) { s.io.stop(); s.changed() }, done)
	case agent.FollowServer:
		m.noteReceiving()
		m.receiveTry = m.w.now
		m.worker.interrupt = nil
		m.statement(core.ReceiveStartLimit, func(s *mysqld) { s.followOutside() }, done)
	case agent.BecomeWhole:
		m.becomeWhole(done)
	case agent.StartReceiving:
		m.noteReceiving()
		m.receiveTry = m.w.now
		m.worker.interrupt = nil // not given up half way
		m.statement(core.ReceiveStartLimit, func(s *mysqld) { s.io.start(); s.changed() }, done)
	case agent.StartApplying:
		m.statement(agent.StatementLimit, func(s *mysqld) { s.startApplying() }, done)
	case agent.AcceptClients:
		done("")
	case agent.GiveAcks:
		m.statement(agent.StatementLimit, func(s *mysqld) { s.semi.give = a.On; s.io.stop(); s.changed() }, done)
	case agent.WaitApplied:
		m.waitApplied(a, done)
	case agent.Follow:
		m.noteReceiving()
		m.receiveTry = m.w.now
		m.worker.interrupt = nil
		var refused error
		m.statement(core.ReceiveStartLimit, func(s *mysqld) { refused = s.follow(a) }, func(err string) {
			switch {
			case err != "":
			case refused != nil:
				err = refused.Error()
			default:
				m.forgetTail()
			}
			done(err)
		})
	default:
		m.w.fail("model", "the model does not know the action %T", a)
	}
}
