package backup

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestNoSlotTwiceWhateverHappens: through clocks that are set, crashes, suspensions and
// edits, no slot is made twice, no two Backups run side by side, nothing is made while
// suspended, and in the end the newest slot has its Backup.
func TestNoSlotTwiceWhateverHappens(t *testing.T) {
	periods := []time.Duration{time.Second, 7 * time.Second, time.Minute, time.Hour}
	rapid.Check(t, func(t *rapid.T) {
		w := aWorld()
		w.Immediate = rapid.Bool().Draw(t, "immediate")
		w.Suspended = rapid.Bool().Draw(t, "suspended")
		w.Next = every(rapid.SampledFrom(periods).Draw(t, "period"))
		if rapid.Bool().Draw(t, "limit") {
			keep := rapid.IntRange(0, 2).Draw(t, "keep")
			w.KeepCompleted, w.KeepFailed = &keep, &keep
		}
		newest, settled := w.Now, time.Time{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 7).Draw(t, "event") {
			case 0:
				w.Suspended = !w.Suspended
			case 1:
				w.Now = w.Now.Add(-time.Duration(rapid.IntRange(1, 10000).Draw(t, "back")) * time.Second)
				if settled.After(w.Now) {
					settled = w.Now
				}
			case 2:
				w.Next = every(rapid.SampledFrom(periods).Draw(t, "period"))
			case 3, 4:
				w.end(rapid.SampledFrom([]Outcome{Completed, Failed}).Draw(t, "outcome"))
			default:
				w.Now = w.Now.Add(time.Duration(rapid.IntRange(0, 20000).Draw(t, "on")) * 500 * time.Millisecond)
			}
			newest = latest(newest, w.Now)
			steps := rapid.IntRange(0, 3).Draw(t, "crash")
			w.hold(t, w.look(steps), settled)
			if w.Suspended && steps > 1 {
				settled = w.Now
			}
		}
		w.Suspended, w.Next = false, every(time.Minute)
		w.end(Completed).look(3)
		w.Now = newest.Add(2 * time.Hour)
		w.end(Completed).look(3)
		if want := "s-" + w.Now.Truncate(time.Minute).Format(slotFormat); count(w.made, want) != 1 {
			t.Fatalf("%s was made %d times: %v", want, count(w.made, want), w.made)
		}
		if p := w.end(Completed).look(3); p.Create != nil {
			t.Fatalf("%+v is made, though nothing is due", p.Create)
		}
	})
}

func count(names []string, name string) int {
	return len(names) - len(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name }))
}

// hold checks one decision; what was due until settled has passed while suspended.
func (w *world) hold(t *rapid.T, p SchedulePlan, settled time.Time) {
	unfinished := 0
	for _, b := range w.Backups {
		if b.Outcome == Unfinished {
			unfinished++
		}
		if b.Outcome == Unfinished && slices.Contains(p.Delete, b.Name) {
			t.Fatalf("%s is deleted while it runs", b.Name)
		}
	}
	if unfinished > 1 {
		t.Fatalf("%d Backups run side by side: %v", unfinished, w.Backups)
	}
	for _, name := range w.made {
		if count(w.made, name) > 1 {
			t.Fatalf("%s was made twice: %v", name, w.made)
		}
	}
	if p.Create == nil {
		return
	}
	if w.Suspended || w.Now.Before(p.Create.Time) || !settled.Before(p.Create.Time) {
		t.Fatalf("%v is made at %s; suspended: %t, until %s", p.Create, w.Now, w.Suspended, settled)
	}
}

// TestNothingIsToldTwice: looked at again, nothing is new.
func TestNothingIsToldTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := aWorld()
		w.Suspended, w.Immediate = rapid.Bool().Draw(t, "suspended"), rapid.Bool().Draw(t, "immediate")
		w.Invalid = rapid.SampledFrom([]string{"", "no schedule"}).Draw(t, "invalid")
		w.Hindered = rapid.SampledFrom([]string{"", "no Cluster"}).Draw(t, "hindered")
		w.HindersDue = rapid.SampledFrom([]string{"", "another runs"}).Draw(t, "hindersDue")
		w.Status.Next = rapid.SampledFrom([]time.Time{{}, day, day.Add(-time.Hour), day.Add(time.Hour)}).Draw(t, "next")
		w.Status.LastSlot = rapid.SampledFrom([]time.Time{{}, day, day.Add(-time.Hour), day.Add(9 * time.Hour)}).Draw(t,
			"last")
		if rapid.Bool().Draw(t, "running") {
			w.Backups = []Made{{Name: "s-20261120000000"}}
		}
		w.look(3)
		w.look(3)
		before := w.Status
		w.Now = w.Now.Add(time.Second)
		if p := w.look(3); p.Create != nil || p.Status != before || len(p.Events) > 0 {
			t.Fatalf("%+v after %+v", p, before)
		}
	})
}
