package draft

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// Draft is a plan in the making. Of its two statuses Cluster.Status is the one that was
// decided before, and Status the one that is being decided.
type Draft struct {
	*core.Observation
	core.Plan

	// doing is the sentence for people, and news what was begun in this pass;
	// remarks are true beside all that. notices are both, by their names. blocked is set
	// when nothing can be done until something outside changes.
	doing   string
	news    []string
	remarks []string
	notices []core.Notice
	blocked *core.Notice
}

// New is a draft that leaves all as it is. Its status may be changed in place: it shares
// no list or pointer with the observation but that of the group, which is package group's.
func New(o *core.Observation) Draft {
	s := o.Cluster.Status
	s.Diverged = slices.Clone(s.Diverged)
	s.Broken = slices.Clone(s.Broken)
	s.Fenced = slices.Clone(s.Fenced)
	s.InstanceNames = slices.Clone(s.InstanceNames)
	s.Members = slices.Clone(s.Members)
	if p := s.Promotion; p != nil {
		clone := *p
		s.Promotion = &clone
	}
	if op := s.Operation; op != nil {
		clone := *op
		s.Operation = &clone
	}
	s.NoneAfter(o.Now)
	return Draft{Observation: o, Plan: core.Plan{Status: s}}
}

// Do adds effects, each once.
func (d *Draft) Do(effects ...core.Effect) {
	for _, e := range effects {
		if !slices.Contains(d.Effects, e) {
			d.Effects = append(d.Effects, e)
		}
	}
}

// RecheckAt asks to look again at t.
func (d *Draft) RecheckAt(t time.Time) {
	wait := max(t.Sub(d.Now), time.Millisecond)
	if d.Recheck == 0 || wait < d.Recheck {
		d.Recheck = wait
	}
}

// Without is the list without a name.
func Without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}
