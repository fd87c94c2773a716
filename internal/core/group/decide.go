package group

import (
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
)

// Decide says what to do about a cluster whose instances are members of a group.
func Decide(o core.Observation) core.Plan {
	d := newDecision(&o)
	if o.Cluster.Deleting {
		return d.plan
	}
	d.names()
	d.seen = see(&o, d.g)
	d.pin()
	d.mirror()
	d.judge()
	d.fence()
	d.welcomeBack()
	d.provision()
	d.reinit()
	d.switchOver()
	d.recoverQuorum()
	d.join()
	d.route()
	d.publish()
	return d.plan
}

// decision is a plan in the making.
type decision struct {
	o    *core.Observation
	s    *core.Status // the status being decided; &plan.Status
	g    *core.GroupStatus
	plan core.Plan
	seen verdict

	// doing is the sentence for people, and news what was begun in this pass;
	// blocked is set when nothing can be done until something outside changes.
	doing   string
	news    []string
	blocked *core.Problem
}

func newDecision(o *core.Observation) *decision {
	d := &decision{o: o}
	d.plan.Status = o.Cluster.Status
	d.s = &d.plan.Status
	d.s.Diverged = slices.Clone(d.s.Diverged)
	d.s.Fenced = slices.Clone(d.s.Fenced)
	d.s.InstanceNames = slices.Clone(d.s.InstanceNames)
	d.g = &core.GroupStatus{}
	if g := o.Cluster.Status.Group; g != nil {
		*d.g = *g
		d.g.LeftOut = slices.Clone(g.LeftOut)
	}
	d.s.Group = d.g
	if op := d.s.Operation; op != nil {
		clone := *op
		d.s.Operation = &clone
	}
	return d
}

// names keeps every instance that was ever made in status, until it is removed.
func (d *decision) names() {
	for i := range d.o.Instances {
		in := &d.o.Instances[i]
		if in.Exists() && !in.IsLeaving() && !slices.Contains(d.s.InstanceNames, in.Name) {
			d.s.InstanceNames = append(d.s.InstanceNames, in.Name)
			d.s.LatestOrdinal = max(d.s.LatestOrdinal, in.Ordinal)
		}
	}
}

// pin chooses, once, the group's name and who makes it.
func (d *decision) pin() {
	if d.g.Name == "" {
		d.g.Name = d.o.Cluster.Group.WishedName
	}
	if d.s.Epoch == 0 {
		d.s.Epoch = 1
	}
	if !d.g.Bootstrapped && d.s.TargetPrimary == "" && !d.seen.agreed && !d.foundData() {
		first := d.o.Cluster.Name + "-1"
		d.s.TargetPrimary, d.s.TargetPrimaryAt = first, d.now()
		d.tell(core.ReasonGroupBootstrap, first+" is to make the group "+d.g.Name)
		d.plan.Again = true
	}
}

// foundData: there may be data of a group, although the Cluster says that there never was
// one. Its status was lost, and a group that is made now would be a second one.
func (d *decision) foundData() bool {
	for i := range d.o.Instances {
		in := &d.o.Instances[i]
		r, known := in.Report.Get()
		vol, volKnown := in.Volume.Get()
		switch {
		case known && r.Data == core.DataPopulated:
			d.block(core.RefusalDataWithoutStatus, in.Name+" holds data, and the Cluster says that there never was a group: nothing is made. Bring the members back, so that they are taken over as they are, or restore the Cluster's status")
			return true
		case volKnown && !vol.Exists, in.SaysEmpty():
		default:
			d.say("waiting to hear from " + in.Name + " whether it holds data")
			return true
		}
	}
	return false
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

func (d *decision) tell(reason core.Reason, message string) {
	d.plan.Events = append(d.plan.Events, core.Event{Reason: reason, Message: message})
}

func (d *decision) warn(reason core.Reason, message string) {
	d.plan.Events = append(d.plan.Events, core.Event{Warning: true, Reason: reason, Message: message})
}

// announce says a sentence beside all others, and tells it as an event when it is new.
func (d *decision) announce(warning bool, reason core.Reason, sentence string) {
	d.news = append(d.news, sentence)
	if !strings.Contains(d.o.Cluster.Status.Reason, sentence) {
		d.plan.Events = append(d.plan.Events, core.Event{Warning: warning, Reason: reason, Message: sentence})
	}
}

// say sets the sentence that tells what is being done, unless one more important was
// said before.
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
