package group

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/core/draft"
	"cnmsql.co/internal/gtid"
)

// ordered is a group of which the primary, which holds less than the others, was told to go on alone,
// and has not; the others come back then.
func ordered(t *testing.T) *world {
	t.Helper()
	w := newWorld(3)
	w.run()
	w.now = w.now.Add(time.Minute)
	for number := 1; number <= 7; number++ {
		for _, in := range w.all {
			if in.name != w.primary || number <= 5 {
				in.hold(number, number)
			}
		}
	}
	for part, name := range []string{"c-2", "c-3"} {
		w.get(name).cut(part + 1)
	}
	w.settle()
	w.cluster.Group.ForceQuorum = true
	if _, text := w.plan(); w.cluster.Status.Operation == nil {
		t.Fatal(text)
	}
	w.cluster.Group.ForceQuorum = false
	w.now = w.now.Add(recoveryLimit)
	w.run()
	if g := w.cluster.Status.Group; !g.IsPending() || len(g.Recoveries) != 1 {
		t.Fatalf("%+v", g)
	}
	return w
}

func (w *world) healAll() {
	for _, in := range w.all {
		in.heal()
	}
}

// A backup of before the recovery can be restored once it is known that it came to nothing.
func TestARecoveryThatCameToNothingCostsNoBackup(t *testing.T) {
	w := ordered(t)
	base := gtid.MustParse(groupUUID + ":1-7")
	before := w.cluster.Status
	w.healAll()
	w.run()
	s := w.cluster.Status
	if s.Group.IsUndecided() || !s.Group.HasQuorum || len(s.Group.LeftOut) > 0 || s.Epoch != before.Epoch+1 {
		t.Errorf("epoch %d: %+v", s.Epoch, s.Group)
	}
	if same := archive.Same(base, before.Epoch-1, s.Group.Recoveries); !same.Equal(base) {
		t.Errorf("of a backup that holds %s only %s counts: %+v", base, same, s.Group.Recoveries)
	}
	if len(s.Diverged) > 0 {
		t.Errorf("%v are said to have diverged", s.Diverged)
	}
}

// Who was to go on has to say itself that it has not, now, and as one that admits nobody else from the
// moment at which it was told to go on.
func TestARecoveryIsForgottenOnTheWordOfThoseWhoWereToGoOn(t *testing.T) {
	for name, spoil := range map[string]func(*world, *core.Observation){
		"it says what was true long ago": func(w *world, o *core.Observation) {
			in := o.Instance("c-1")
			r, _ := in.Report.Get()
			in.Report = core.Known(r, w.now.Add(-2*staleAfter), w.now)
		},
		"it cannot be told whom to admit": func(w *world, o *core.Observation) {
			in := o.Instance("c-1")
			r, _ := in.Report.Get()
			r.Version = "8.0.23"
			in.Report = core.Known(r, w.now, w.now)
		},
		"another one was to go on, too, and is gone": func(_ *world, o *core.Observation) {
			o.Cluster.Status.Group.ViewMax = 2
		},
		"somebody was left out before": func(_ *world, o *core.Observation) {
			o.Cluster.Status.Group.Recoveries[0].Pending = false
		},
	} {
		w := ordered(t)
		w.healAll()
		w.settle()
		o := w.observe()
		spoil(w, &o)
		if g := Decide(o).Status.Group; len(g.Recoveries) != 1 {
			t.Errorf("%s: it is forgotten: %+v", name, g)
		}
	}
}

// A recovery is not judged by one who was to go on, and whose mysqld does not answer.
func TestARecoveryIsNotForgottenWhileOneWhoWasToGoOnTellsNothing(t *testing.T) {
	w := newWorld(6)
	w.run()
	w.now = w.now.Add(time.Minute)
	for _, name := range []string{"c-4", "c-5", "c-6"} {
		w.get(name).cut(1)
	}
	w.settle()
	w.run()
	w.cluster.Group.ForceQuorum = true
	if text, _ := w.pass(); w.cluster.Status.Operation == nil {
		t.Fatal(text)
	}
	w.settle()
	o := w.observe()
	in := o.Instance("c-3")
	r, _ := in.Report.Get()
	r.State, r.Server = core.Hung, nil
	in.Report = core.Known(r, w.now, w.now)
	if g := Decide(o).Status.Group; !g.HasQuorum || len(g.Recoveries) != 1 || len(g.LeftOut) != 3 {
		t.Errorf("%+v", g)
	}
}

// A recovery that is ordered while another is not settled, or somebody is left out, is not forgotten.
func TestOnlyARecoveryOfAllIsPending(t *testing.T) {
	w := ordered(t)
	o := w.observe()
	d := newDecision(&o)
	held := draft.Held([]*core.Instance{o.Instance("c-1")})
	d.countOn([]string{"c-1"}, held, held)
	if d.g.IsPending() || len(d.g.Recoveries) != 2 {
		t.Errorf("%+v", d.g)
	}
}
