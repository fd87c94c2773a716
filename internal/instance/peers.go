package instance

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

// peersState is what other instances and the API server were asked, and have said.
type peersState struct {
	// asking: a question is on its way. failed is why the last had no answer, again when
	// the next may be asked.
	asking bool
	failed string
	again  time.Time
	// primary is what the primary holds.
	primary *agent.Position
	// word is what the Cluster said when it was read from the API server.
	word *agent.Word
	// elsewhere is what others hold of what this instance may have lost.
	elsewhere agent.Elsewhere
}

// inquirer asks other instances and the API server, one question at a time, and keeps what they have said.
type inquirer struct {
	opt Options
	tls *tlsFiles
	by  inquired
	// roles is the own mysqld.
	roles func() *mysql.Server

	mu sync.Mutex
	st peersState
}

// inquired is what an inquirer asks of its manager.
type inquired interface {
	// reread reads the Cluster from the API server, and goes by it unless a newer view came meanwhile.
	reread(ctx context.Context) (c *v1alpha1.Cluster, taken bool, err error)
	// retell has the report made again, and the worker look.
	retell()
}

func newInquirer(m *manager) *inquirer {
	return &inquirer{opt: m.opt, tls: m.tls, by: m,
		roles: func() *mysql.Server { return m.roles }}
}

// change changes what it keeps, and has that told.
func (q *inquirer) change(f func(*peersState)) {
	q.mu.Lock()
	f(&q.st)
	q.mu.Unlock()
	q.by.retell()
}

// said is what was asked and answered.
func (q *inquirer) said() peersState {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.st
}

// ask asks another instance beside the worker, so that one that does not answer
// holds up nothing. What question returns is done to the state.
func (q *inquirer) ask(question func(context.Context) (func(*peersState), error)) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.st.asking {
		return nil
	}
	q.st.asking = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), agent.AskLimit)
		defer cancel()
		q.noteAsked(question(ctx))
	}()
	return nil
}

func (q *inquirer) noteAsked(answer func(*peersState), err error) {
	q.change(func(s *peersState) {
		s.asking, s.failed = false, ""
		if err == nil {
			answer(s)
			return
		}
		s.failed, s.again = err.Error(), time.Now().Add(agent.AskRetry)
	})
}

// askPrimary reads what this instance holds first, and what the primary holds
// after that.
func (q *inquirer) askPrimary(a agent.AskPrimary) error {
	return q.ask(func(ctx context.Context) (func(*peersState), error) {
		mine, err := q.roles().Executed(ctx)
		if err != nil {
			return nil, err
		}
		at := time.Now()
		r, err := q.peerStatus(ctx, a.Instance)
		if err != nil {
			return nil, err
		}
		pos := a.Answered(r, mine, at)
		return func(s *peersState) { pos.After(s.primary); s.primary = pos }, nil
	})
}

// peerStatus asks another instance of which mysqld answers. What the manager of one says of
// which it does not is returned with the error.
func (q *inquirer) peerStatus(ctx context.Context, instance string) (core.Report, error) {
	host := q.opt.Peer(instance)
	conf, err := q.tls.client(host)
	if err != nil {
		return core.Report{}, err
	}
	client := control.NewClient(net.JoinHostPort(host, strconv.Itoa(q.opt.ControlPort)), conf)
	defer client.Close()
	s, err := client.Status(ctx)
	if err != nil {
		return core.Report{}, fmt.Errorf("asking %s for its position: %w", instance, err)
	}
	if s.Report.Instance != instance || s.Report.Server == nil {
		return s.Report, fmt.Errorf("asking %s for its position: %s answers and says %s %s", instance,
			cmp.Or(s.Report.Instance, "nobody"), s.Report.State, s.Report.Reason)
	}
	if s.Taken < s.Asked {
		// Held against an older position of the primary, what was replicated
		// since would look errant.
		return s.Report, fmt.Errorf("asking %s for its position: its mysqld did not answer in time", instance)
	}
	return s.Report, nil
}

// askHeld asks others what they hold, all at once and beside the worker. Each answer counts as it comes.
func (q *inquirer) askHeld(a agent.AskHeld) {
	q.change(func(s *peersState) { s.elsewhere = s.elsewhere.Asks(a, time.Now()) })
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), agent.HeldLimit)
		defer cancel()
		var asked sync.WaitGroup
		for _, name := range a.Instances {
			asked.Go(func() { q.askOneHeld(ctx, name) })
		}
		asked.Wait()
		q.change(func(s *peersState) { s.elsewhere = s.elsewhere.Ends(time.Now()) })
	}()
}

// askOneHeld asks one. What it said of its mysqld before it was asked does not count.
func (q *inquirer) askOneHeld(ctx context.Context, name string) {
	at := time.Now()
	r, err := q.peerStatus(ctx, name)
	if err != nil {
		r.Server = nil
	}
	if h, says := agent.HeldBy(r, at); says && h.Instance == name {
		q.change(func(s *peersState) { s.elsewhere = s.elsewhere.Says(h) })
	}
}

// opens notes that mysqld is opened for writes.
func (q *inquirer) opens() {
	q.change(func(s *peersState) { s.elsewhere = s.elsewhere.Opens(time.Now()) })
}

// askWord reads the Cluster from the API server, beside the worker. It counts as said when
// it was asked for. It is also the newer view, if none has come meanwhile: the watch may
// be of before the network was cut.
func (q *inquirer) askWord() error {
	return q.ask(func(ctx context.Context) (func(*peersState), error) {
		at := time.Now()
		c, _, err := q.by.reread(ctx)
		if err != nil {
			return nil, err
		}
		word := &agent.Word{At: at, Epoch: c.Status.PrimaryEpoch}
		if p := c.Status.Promotion; p != nil {
			word.Instance = p.Instance
		}
		return func(s *peersState) { s.word = word }, nil
	})
}

// What an inquirer, and others, ask of their manager, besides.

// reread reads the Cluster from the API server, and tells whether the answer is the view now. It is not where
// another view came meanwhile: which of the two is newer is not known.
func (m *manager) reread(ctx context.Context) (c *v1alpha1.Cluster, taken bool, err error) {
	views := get(m, func(s *state) int { return s.cluster.views })
	if c, err = m.kube.Cluster(ctx); err != nil {
		return nil, false, err
	}
	m.takeView(c, func(s *state) bool {
		taken = s.cluster.views == views
		return taken
	})
	return c, taken, nil
}
