package async

import (
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
)

// Decide says what to do about a cluster with the async topology.
func Decide(o core.Observation) core.Plan {
	d := newDecision(&o)
	if o.Cluster.Deleting {
		return d.plan
	}
	d.names()
	d.fence()
	d.keepEvidence()
	d.diagnosis = diagnose(&o)
	d.judgeReplicas()
	d.provision()
	d.reinit()
	d.operate()
	d.join()
	d.resume()
	d.acknowledge()
	d.keepSize()
	d.route()
	d.publish()
	return d.plan
}

// decision is a plan in the making.
type decision struct {
	o    *core.Observation
	s    *core.Status // the status being decided; &plan.Status
	plan core.Plan

	diagnosis finding
	// doing is the sentence for people, and news what was begun in this pass;
	// blocked is set when nothing can be done until something outside changes.
	doing   string
	news    []string
	blocked *core.Problem
	// hangs: commits wait for more acknowledgements than replicas can give.
	hangs bool
}

func newDecision(o *core.Observation) *decision {
	d := &decision{o: o}
	d.plan.Status = o.Cluster.Status
	d.s = &d.plan.Status
	d.s.Diverged = slices.Clone(d.s.Diverged)
	d.s.Broken = slices.Clone(d.s.Broken)
	d.s.InstanceNames = slices.Clone(d.s.InstanceNames)
	if p := d.s.Promotion; p != nil {
		clone := *p
		d.s.Promotion = &clone
	}
	if op := d.s.Operation; op != nil {
		clone := *op
		d.s.Operation = &clone
	}
	d.includeHolder()
	return d
}

// includeHolder: an instance that holds the promotion and is not observed is one
// of which nothing is known.
func (d *decision) includeHolder() {
	p := d.s.Promotion
	if p != nil && d.o.Instance(p.Instance) == nil {
		d.o.Instances = append(slices.Clone(d.o.Instances), core.Instance{Name: p.Instance})
	}
}

// names keeps every instance that was ever made in status, until it is removed:
// one whose Pod and volume are both gone is made again under its name. Before
// there is a primary, an instance that the status does not know is adopted only
// when it says that it has no data: the status may have been lost.
func (d *decision) names() {
	for i := range d.o.Instances {
		in := &d.o.Instances[i]
		if in.Exists() && !in.IsLeaving() && (d.s.Promotion != nil || in.SaysEmpty()) && !slices.Contains(d.s.InstanceNames, in.Name) {
			d.s.InstanceNames = append(d.s.InstanceNames, in.Name)
			d.s.LatestOrdinal = max(d.s.LatestOrdinal, in.Ordinal)
		}
	}
}

func (d *decision) now() time.Time { return d.o.Now }

// do adds effects, each once.
func (d *decision) do(effects ...core.Effect) {
	for _, e := range effects {
		if !slices.Contains(d.plan.Effects, e) {
			d.plan.Effects = append(d.plan.Effects, e)
		}
	}
}

func (d *decision) again(e ...core.Effect) {
	d.do(e...)
	d.plan.Again = true
}

func (d *decision) tell(reason core.Reason, message string) {
	d.plan.Events = append(d.plan.Events, core.Event{Reason: reason, Message: message})
}

func (d *decision) warn(reason core.Reason, message string) {
	d.plan.Events = append(d.plan.Events, core.Event{Warning: true, Reason: reason, Message: message})
}

// announce says a sentence beside all others and tells it as an event, unless the
// status says it already: an event is for what is new.
func (d *decision) announce(warning bool, reason core.Reason, sentence string) {
	d.news = append(d.news, sentence)
	if !d.isSaid(sentence) {
		d.plan.Events = append(d.plan.Events, core.Event{Warning: warning, Reason: reason, Message: sentence})
	}
}

// isSaid: the status says it already.
func (d *decision) isSaid(sentence string) bool {
	return strings.Contains(d.o.Cluster.Status.Reason, sentence)
}

// say sets the sentence that tells what is being done, unless one more
// important was said before.
func (d *decision) say(sentence string) {
	if d.doing == "" {
		d.doing = sentence
	}
}

// block records why nothing can be done; the first hindrance stands.
func (d *decision) block(reason core.Reason, message string) {
	if d.blocked == nil {
		d.blocked = &core.Problem{Reason: string(reason), Message: message}
	}
}

// recheckAt asks to look again at t.
func (d *decision) recheckAt(t time.Time) {
	wait := max(t.Sub(d.now()), time.Millisecond)
	if d.plan.Recheck == 0 || wait < d.plan.Recheck {
		d.plan.Recheck = wait
	}
}

// holder is the instance that may be writable, by what is decided so far, or nil.
func (d *decision) holder() *core.Instance {
	if d.s.Promotion == nil {
		return nil
	}
	return d.o.Instance(d.s.Promotion.Instance)
}
