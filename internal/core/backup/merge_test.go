package backup

import (
	"testing"
	"time"
)

func TestWhenAnArchiveIsMergedByAJobOfItsOwn(t *testing.T) {
	const day = 24 * time.Hour
	begun := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	at := begun.Add
	completed := Taken{Created: at(0), Started: at(0), Ended: at(10 * time.Hour), Completed: true}
	failed := Taken{Created: at(0), Started: at(0), Ended: at(10 * time.Hour)}
	waiting := Taken{Created: at(0)}
	running := Taken{Created: at(0), Started: at(time.Hour)}
	for name, c := range map[string]struct {
		merging Merging
		now     time.Duration
		step    MergeStep
		wake    time.Duration
	}{
		"after a day":                  {Merging{}, day, MergeBegins, 0},
		"not earlier":                  {Merging{}, day - 1, MergeWaits, 1},
		"later where parts are few":    {Merging{RPO: 10 * time.Second}, day, MergeWaits, 163840*time.Second - day},
		"but after a week":             {Merging{RPO: time.Hour}, 7 * day, MergeBegins, 0},
		"not when a Backup has merged": {Merging{Taken: []Taken{completed}}, day, MergeWaits, 10 * time.Hour},
		"but a day after that":         {Merging{Taken: []Taken{completed}}, 34 * time.Hour, MergeBegins, 0},
		"a Backup that failed has not": {Merging{Taken: []Taken{failed}}, day, MergeBegins, 0},
		"nor one that waits":           {Merging{Taken: []Taken{waiting}}, day, MergeBegins, 0},
		"one that is taken will":       {Merging{Taken: []Taken{running}}, 9 * day, MergeWaits, 0},
		"while its Job goes on":        {Merging{Job: &MergeJob{}}, 9 * day, MergeWaits, 0},
		"a day after its Job":          {Merging{Job: &MergeJob{Ended: at(day)}}, 2 * day, MergeClears, 0},
		"not earlier than that":        {Merging{Job: &MergeJob{Ended: at(day)}}, 2*day - 1, MergeWaits, 1},
		"a quarter of a day after its Job failed": {
			Merging{Job: &MergeJob{at(day), true}}, 30 * time.Hour, MergeClears, 0},
		"not earlier than a quarter": {Merging{Job: &MergeJob{at(day), true}}, 30*time.Hour - 1, MergeWaits, 1},
		"later when it fails for long": {
			Merging{Job: &MergeJob{at(2 * day), true}}, 2*day + 1, MergeWaits, 12*time.Hour - 1},
		"each day at least": {Merging{Job: &MergeJob{at(30 * day), true}}, 31 * day, MergeClears, 0},
		"at most each day":  {Merging{Job: &MergeJob{at(30 * day), true}}, 31*day - 1, MergeWaits, 1},
		"its Job failed, and a Backup has merged": {
			Merging{Taken: []Taken{completed}, Job: &MergeJob{at(1), true}}, day, MergeWaits, 10 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			c.merging.Since = begun
			if step, wake := c.merging.Next(at(c.now)); step != c.step || wake != c.wake {
				t.Errorf("%s, again after %s; not %s after %s", step, wake, c.step, c.wake)
			}
		})
	}
}

// A Job would fail.
func TestWhereNothingIsArchivedNothingIsMerged(t *testing.T) {
	now := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	for name, m := range map[string]Merging{
		"none":       {},
		"one failed": {Job: &MergeJob{now.Add(-30 * 24 * time.Hour), true}},
	} {
		if step, wake := m.Next(now); step != MergeWaits || wake != 0 {
			t.Errorf("%s: %s, again after %s", name, step, wake)
		}
	}
}
