package whatif

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/topology"
	"cnmsql.co/internal/gtid"
)

const (
	// step is how long an order and its answer take.
	step = 5 * time.Millisecond
	// quiet is how long nothing changes before the play is over.
	quiet = 3 * core.LookAgain
	// passes and horizon bound a play that does not end.
	passes  = 20000
	horizon = 24 * time.Hour
)

// model is a cluster in which time is data.
type model struct {
	o        core.Observation
	begun    time.Time
	managers map[string]*manager
	// coming is what will happen by itself, the next first.
	coming []happening
	// before is the promotion at the beginning, and had what its holder had executed.
	before *core.Promotion
	had    core.Fact[gtid.Set]

	waits []Wait
	// waited is what the last of them was for.
	waited cause
	// settled is how many of the waits something came of, changed when something
	// changed last.
	settled int
	changed time.Time
	assumed []string
	// hung is for how long no commit could be acknowledged.
	hung time.Duration
}

// manager is the truth of one instance; of one that cannot be reached by the operator at
// the beginning, nothing is known at all.
type manager struct {
	name       string
	report     core.Report
	reachable  bool
	withheldAt time.Time
	// leaseEpoch is that at which it holds the lease, 0 if not, and renewedAt when it was renewed last.
	leaseEpoch int64
	renewedAt  time.Time
	// dead: whatever it was, it does nothing more, though nobody may know it yet.
	dead bool
	// restart, rejoin and pod are what is done at the order to restart in place, at
	// the promise to stay read-only, and when its Pod is recreated; nil when there is
	// nothing to do.
	restart, rejoin func()
	// pod recreates it, by the name by which it is awaited.
	pod func(awaited string)
}

// happening is what comes by itself, if it is still to come.
type happening struct {
	at    time.Time
	what  string
	still func() bool
	do    func()
}

// plays of the topologies.
var plays = map[core.Topology]func(core.Observation, []string, How) (Answer, error){
	core.TopologyAsync: playReplicas,
	core.TopologyGroup: playGroup,
}

// Play loses instances and tells what happens then.
func Play(o core.Observation, lose []string, how How) (Answer, error) {
	return plays[o.Cluster.Topology](o, lose, how)
}

func playReplicas(o core.Observation, lose []string, how How) (Answer, error) {
	m, err := newModel(o)
	if err != nil {
		return Answer{}, err
	}
	if lose, err = m.withNeighbours(lose, how); err != nil {
		return Answer{}, err
	}
	m.lookOnce()
	for _, name := range lose {
		m.lose(name, how)
	}
	a := Answer{Primary: m.before.Instance, Lost: lose, How: how}
	m.play(&a)
	m.told(&a)
	return a, nil
}

// told is how long it took, and what was assumed.
func (m *model) told(a *Answer) {
	a.Waits, a.Seconds, a.Assumed = append([]Wait{}, m.waits[:m.settled]...), tenths(m.changed.Sub(m.begun)), m.assumed
	for i := range a.Waits {
		a.Waits[i].Seconds = math.Round(10*a.Waits[i].Seconds) / 10
	}
}

func newModel(o core.Observation) (*model, error) {
	p := o.Cluster.Status.Promotion
	switch {
	case p == nil:
		return nil, fmt.Errorf("cluster %s has no primary yet: there is nothing to lose", o.Cluster.Name)
	case o.Cluster.Deleting:
		return nil, fmt.Errorf("cluster %s is being deleted: nothing is promoted in it", o.Cluster.Name)
	}
	o.Instances = slices.Clone(o.Instances)
	if o.Instance(p.Instance) == nil { // nothing is known of it
		o.Instances = append(o.Instances, core.Instance{Name: p.Instance})
	}
	before := *p
	m := &model{o: o, begun: o.Now, changed: o.Now, managers: map[string]*manager{}, before: &before}
	for i := range o.Instances {
		in := &o.Instances[i]
		r, known := in.Report.Get()
		t := &manager{name: in.Name, report: own(r), reachable: known}
		if r.Withheld != nil {
			t.withheldAt = o.Now.Add(-time.Duration(r.Withheld.Seconds) * time.Second)
		}
		m.managers[in.Name] = t
		if !known {
			m.assume("%s does not answer now, and is treated as silent", in.Name)
		} else if in.Name == p.Instance {
			m.had = in.LastExecuted
		}
	}
	// Nobody but the operator knows for how long the lease has been as it is; the
	// primary may have renewed it this very moment.
	if l, known := o.Cluster.Lease.Get(); known {
		m.putLease(l)
		if t := m.managers[l.Holder]; t != nil {
			t.leaseEpoch, t.renewedAt = l.Epoch, o.Now
		}
	}
	return m, nil
}

// lookOnce lets the operator decide once before anything is lost, so that what it knows by now, it
// knows then; above all, who has diverged. The decision does not count when it grants another
// promotion.
func (m *model) lookOnce() {
	plan := topology.Decide(m.o)
	if p := plan.Status.Promotion; p != nil && p.GrantedAt.Equal(m.before.GrantedAt) {
		m.publish(plan)
	}
}

func (m *model) assume(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(m.assumed, text) {
		m.assumed = append(m.assumed, text)
	}
}

func (m *model) promotion() *core.Promotion { return m.o.Cluster.Status.Promotion }

// play goes on until somebody is promoted or nothing happens any more.
func (m *model) play(a *Answer) {
	for range passes {
		m.hearAll()
		plan, basis := topology.Decide(m.o), *m.promotion()
		changed := m.publish(plan)
		if p := plan.Status.Promotion; !p.GrantedAt.Equal(m.before.GrantedAt) || p.Instance != m.before.Instance {
			m.granted(a, p, &basis)
			return
		}
		for _, e := range plan.Effects {
			changed = m.carryOut(e) || changed
		}
		changed = m.converge() || changed
		switch {
		case changed:
			m.changed, m.settled = m.o.Now, len(m.waits)
			m.pass(m.o.Now.Add(step))
		case plan.Again && asksAnew(plan):
			m.pass(m.o.Now.Add(step))
		case !m.wait(plan.Recheck):
			m.nobody(a)
			return
		}
	}
	a.Outcome, a.Because = Undecided, m.o.Cluster.Status.Reason
}

// asksAnew reports whether the operator wants to hear once more, later, what it has heard already.
func asksAnew(plan core.Plan) bool {
	return slices.ContainsFunc(plan.Effects, func(e core.Effect) bool {
		_, is := e.(core.Refresh)
		return is
	})
}

// publish takes over what was decided; true when it is something new.
func (m *model) publish(plan core.Plan) bool {
	changed := !reflect.DeepEqual(m.o.Cluster.Status, plan.Status)
	m.o.Cluster.Status, m.o.Carried = plan.Status, plan.Carried
	return changed
}

// wait lets time pass until something happens by itself or the operator looks
// again; false when nothing will.
func (m *model) wait(recheck time.Duration) bool {
	m.coming = slices.DeleteFunc(m.coming, func(h happening) bool { return h.still != nil && !h.still() })
	until, why := m.o.Now.Add(core.LookAgain), m.decided()
	if recheck > 0 {
		until = m.o.Now.Add(recheck)
	}
	next := len(m.coming) > 0 && (recheck == 0 || !m.coming[0].at.After(until))
	if next {
		until, why = m.coming[0].at, cause{text: m.coming[0].what, what: m.coming[0].what}
	}
	isOver := recheck == 0 && len(m.coming) == 0 && until.Sub(m.changed) > quiet
	if isOver || until.Sub(m.begun) > horizon {
		return false
	}
	m.passed(until.Sub(m.o.Now), why)
	m.pass(until)
	if next {
		m.coming[0].do()
		m.coming = m.coming[1:]
		m.changed, m.settled = m.o.Now, len(m.waits)
	}
	return true
}

// pass has time go by, in which commits end or do not.
func (m *model) pass(until time.Time) {
	if m.o.Cluster.Topology.UsesSemiSync() && m.hangs() {
		m.hung += until.Sub(m.o.Now)
	}
	m.o.Now = until
}

// cause is what is waited for: what comes by itself, or else what was decided.
type cause struct {
	text string
	// what comes; "" where something was decided: this diagnosis, step and refusal.
	what      string
	diagnosis core.Diagnosis
	step      core.Step
	refusal   core.Reason
}

// isSame reports whether it is the same that is waited for. What is said beside it may change meanwhile.
func (c cause) isSame(as cause) bool {
	c.text = as.text
	return c == as
}

// decided is what is waited for where nothing comes by itself before the operator looks again.
func (m *model) decided() cause {
	s := &m.o.Cluster.Status
	c := cause{text: s.Reason, diagnosis: s.Diagnosis}
	if s.Operation != nil {
		c.step = s.Operation.Step
	}
	if s.Blocked != nil {
		c.refusal = s.Blocked.Reason
	}
	return c
}

// passed notes a wait; two for the same are one, unless something came of the first.
func (m *model) passed(d time.Duration, why cause) {
	if d <= step {
		return
	}
	if n := len(m.waits); n > m.settled && m.waited.isSame(why) {
		m.waits[n-1].Seconds += d.Seconds()
		return
	}
	m.waits, m.waited = append(m.waits, Wait{Seconds: d.Seconds(), For: why.text}), why
}

func (m *model) at(after time.Duration, what string, do func()) {
	m.when(after, what, nil, do)
}

// when something happens later, unless it is out of date by then.
func (m *model) when(after time.Duration, what string, still func() bool, do func()) {
	m.coming = append(m.coming, happening{at: m.o.Now.Add(after), what: what, still: still, do: do})
	slices.SortStableFunc(m.coming, func(a, b happening) int { return a.at.Compare(b.at) })
}

// hearAll takes a report of every manager that can be reached. Of one that cannot be reached,
// nothing is known. Of one that is dead, the last report is taken for true until its silence is
// noticed.
func (m *model) hearAll() {
	for i := range m.o.Instances {
		in, now := &m.o.Instances[i], m.o.Now
		t, h := m.managers[in.Name], in.Heard()
		if !t.reachable {
			h.Lose()
			h.Put(in)
			continue
		}
		if t.dead {
			continue // what it said last is taken for true until its silence is noticed
		}
		r := own(t.report)
		if r.Withheld != nil {
			r.Withheld.Seconds = int(now.Sub(t.withheldAt).Seconds())
		}
		h.Take(r, now, now)
		h.Put(in)
	}
}

// own is a copy that shares nothing that the model changes.
func own(r core.Report) core.Report {
	if r.Withheld != nil {
		w := *r.Withheld
		r.Withheld = &w
	}
	if r.Server != nil {
		s := *r.Server
		if s.Replication != nil {
			rep := *s.Replication
			s.Replication = &rep
		}
		r.Server = &s
	}
	return r
}

func (m *model) granted(a *Answer, p, basis *core.Promotion) {
	m.changed, m.settled = m.o.Now, len(m.waits)
	a.Outcome, a.Promoted, a.Epoch, a.Proof, a.Evidence = Promoted, p.Instance, p.Epoch, p.Proof, p.Evidence
	if s := m.managers[p.Instance].report.Server; s != nil {
		a.ToApply = p.RequiredGTID.Subtract(s.Executed).Count()
	}
	a.Losses = m.losses(p, basis)
}

// nobody was promoted: the primary goes on, or the operator says why not.
func (m *model) nobody(a *Answer) {
	s := &m.o.Cluster.Status
	a.Outcome, a.Diagnosis, a.Because = Blocked, s.Diagnosis, s.Reason
	if s.Blocked != nil {
		a.Refusal = s.Blocked.Reason
	}
	if s.Diagnosis.IsWell() || s.Diagnosis == core.PrimaryFollows {
		a.Outcome, a.Promoted, a.Epoch = Continues, s.Promotion.Instance, s.Promotion.Epoch
		if a.WritesHang = m.hangs(); !a.WritesHang {
			a.WritesHung = tenths(m.hung)
		}
	}
}

// hangs reports whether commits wait for ever, for more acknowledgements than replicas can give.
func (m *model) hangs() bool {
	t := m.managers[m.promotion().Instance]
	return t.report.Server != nil && t.report.Server.SemiSync.Starves(m.attached(t.name))
}

// attached are the replicas that acknowledge what a source commits.
func (m *model) attached(source string) int {
	n := 0
	for _, t := range m.managers {
		if t.reachable && m.receives(t, source) && t.report.Server.SemiSync.ReplicaEnabled {
			n++
		}
	}
	return n
}

// receives reports whether the instance receives from a source of the cluster.
func (m *model) receives(t *manager, source string) bool {
	s := t.report.Server
	return s != nil && s.Replication != nil && s.Replication.IORunning && !s.Replication.NoSpace &&
		core.IsHostOf(s.Replication.SourceHost, source)
}
