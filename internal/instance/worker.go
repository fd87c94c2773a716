package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// job is something that an order asks the worker to do.
type job struct {
	do   func() error
	done chan error
}

// workerState is what was decided last, and what came of it.
type workerState struct {
	decision agent.Decision
	trouble  *trouble
	// wasFenced: it was fenced when it last was fenced or running.
	wasFenced bool
	waiting   int // orders that wait for the worker
}

// trouble is an action that failed, and when it may be tried again.
type trouble struct {
	actions string
	err     error
	count   int
	retryAt time.Time
}

var errInterrupted = errors.New("interrupted by an order")

// work is the one worker: it decides and acts, and does what orders ask.
func (m *manager) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-m.jobs:
			j.done <- j.do()
		case <-m.wake:
		}
		if m.step(ctx) {
			return
		}
		m.replacer.giveWay()
	}
}

// submit has the worker do something next; what the worker waits for is given up.
func (m *manager) submit(ctx context.Context, do func() error) error {
	m.mu.Lock()
	m.st.worker.waiting++
	if m.interrupt != nil {
		m.interrupt()
	}
	m.mu.Unlock()
	j := job{do: do, done: make(chan error, 1)}
	select {
	case m.jobs <- j:
		m.update(func(s *state) { s.worker.waiting-- })
	case <-ctx.Done():
		m.update(func(s *state) { s.worker.waiting-- })
		return ctx.Err()
	case <-m.ended:
		return errors.New("the manager has ended")
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// step decides and acts until there is nothing to do, or nothing new. It tells
// whether the manager is to end.
func (m *manager) step(ctx context.Context) (exit bool) {
	before := ""
	for ctx.Err() == nil {
		m.cloner.verifyClone(ctx)
		d := agent.Decide(m.facts())
		key := keyOf(d.Actions)
		m.tell(d, key)
		if key == "" || key == before || m.pauses(key) {
			return false
		}
		before = key
		for _, a := range d.Actions {
			if _, last := a.(agent.Exit); last {
				return true
			}
			if err := m.act(ctx, a); err != nil {
				m.noteTrouble(key, a, err)
				return false
			}
		}
		m.update(func(s *state) { s.worker.trouble = nil })
		m.poll(ctx)
	}
	return false
}

func keyOf(actions []agent.Action) string {
	var parts []string
	for _, a := range actions {
		parts = append(parts, a.String())
	}
	return strings.Join(parts, ", ")
}

// tell publishes a decision. A trouble is over when something else is to be done.
func (m *manager) tell(d agent.Decision, key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if was := m.st.worker.decision; was.State != d.State || was.Reason != d.Reason {
		m.log.Info("state", "state", d.State, "reason", d.Reason, "message", d.Message)
	}
	m.st.worker.decision = d
	m.dateErrant(d.Errant)
	if d.State == core.Fenced || d.State == core.Running {
		m.st.worker.wasFenced = d.State == core.Fenced
	}
	if t := m.st.worker.trouble; t != nil && t.actions != key {
		m.st.worker.trouble = nil
	}
	m.announce()
}

func (m *manager) pauses(key string) bool {
	return get(m, func(s *state) bool {
		return s.worker.trouble != nil && s.worker.trouble.actions == key && time.Now().Before(s.worker.trouble.retryAt)
	})
}

// noteTrouble remembers what failed, so that it is reported, and tried again a
// little later each time.
func (m *manager) noteTrouble(key string, a agent.Action, err error) {
	if errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		poke(m.wake)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.st.worker.trouble
	if t == nil || t.actions != key {
		t = &trouble{actions: key}
	}
	next := &trouble{actions: key, err: err, count: t.count + 1}
	next.retryAt = time.Now().Add(min(250*time.Millisecond<<min(t.count, 5), 5*time.Second))
	m.st.worker.trouble = next
	m.log.Error("failed", "action", a.String(), "error", err, "attempt", next.count)
	m.announce()
}

// act carries out one action; an order ends what it waits for.
func (m *manager) act(ctx context.Context, a agent.Action) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.mu.Lock()
	if m.st.worker.waiting > 0 {
		m.mu.Unlock()
		return errInterrupted
	}
	m.interrupt = cancel
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.interrupt = nil
		m.mu.Unlock()
	}()
	level := slog.LevelInfo
	switch a.(type) {
	case agent.WaitApplied, agent.AskPrimary:
		level = slog.LevelDebug
	}
	m.log.Log(ctx, level, "acts", "action", a.String())
	err := m.do(ctx, a)
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// statementLimit bounds the statements of an action together.
const statementLimit = 15 * time.Second

func (m *manager) do(ctx context.Context, a agent.Action) error {
	switch a := a.(type) {
	case agent.MakeData:
		if a.From == core.OriginRestored {
			return m.restorer.restoreBackup(m.object())
		}
		return m.maker.makeData(m.object(), a.From)
	case agent.StartServer:
		return m.startServer(ctx)
	case agent.StopServer:
		return m.stopServer(a)
	case agent.Abort:
		m.activities.cancel()
		return m.killMysqld()
	case agent.CloneFrom:
		return m.cloner.cloneFrom(a.Donor)
	case agent.Demote:
		return m.stopWrites()
	case agent.AcquireLease:
		return m.leases.acquire(ctx, a.Epoch)
	case agent.ConfirmPromotion:
		return m.leases.confirmPromotion(ctx, a.Epoch)
	case agent.BecomePrimary:
		return m.becomePrimary(ctx, a)
	case agent.AskPrimary:
		return m.inquirer.askPrimary(a)
	case agent.DropAcks:
		return m.acks.dropAcks()
	case agent.AskWord:
		return m.inquirer.askWord()
	case agent.AskSuccessor:
		return m.inquirer.askSuccessor(a)
	case agent.CutTail:
		return m.cutTail(a)
	case agent.BootstrapGroup:
		return m.membership.bootstrapGroup(ctx, a)
	case agent.JoinGroup:
		return m.membership.startGroup(false)
	case agent.LeaveGroup:
		return m.membership.leaveGroup(a.Within)
	case agent.RememberGroup:
		return m.membership.rememberGroup(a.Name)
	case agent.ForgetData:
		return m.maker.forgetData()
	}
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	return m.say(ctx, a)
}

// say carries out what is a few statements.
func (m *manager) say(ctx context.Context, a agent.Action) error {
	switch a := a.(type) {
	case agent.StopReceiving:
		return m.roles.StopReceiving(ctx)
	case agent.StartReceiving:
		return m.startReceiving(ctx)
	case agent.StartApplying:
		m.acks.awaitAcksNoLonger()
		m.update(func(s *state) { s.status.applying.tried = time.Now() })
		return m.roles.StartApplying(ctx)
	case agent.AcceptClients:
		return m.acceptClients(ctx)
	case agent.GiveAcks:
		return m.acks.giveAcks(ctx, a.On)
	case agent.WaitApplied:
		return m.waitApplied(ctx, a)
	case agent.Follow:
		return m.follow(ctx, a)
	case agent.BecomeWhole:
		return m.provenance.becomeWhole()
	case agent.NoteReceiving:
		return m.provenance.receives()
	case agent.SettleRole:
		return m.membership.settleRole(ctx, a.Role)
	case agent.CloseForWrites:
		return m.membership.closeForWrites(ctx)
	case agent.OpenForWrites:
		return m.membership.openForWrites(ctx)
	case agent.AdmitMembers:
		return m.membership.admitMembers(ctx, a.Addresses)
	case agent.HoldRejoin:
		return m.membership.holdRejoin(ctx, a.On)
	case agent.HoldExpulsion:
		return m.membership.holdExpulsion(ctx, a.On)
	case agent.ForgetFormer:
		return m.membership.forgetFormer(ctx, a.View)
	case agent.RaiseProtocol:
		return m.membership.raiseProtocol(ctx, a.Version)
	}
	return fmt.Errorf("nobody knows how to %s", a)
}
