package backup

import (
	"testing"
	"time"

	"cnmsql.co/internal/gtid"
)

func TestAGapAsksForOneBackup(t *testing.T) {
	found := time.Date(2026, 11, 24, 1, 0, 0, 0, time.UTC)
	gap := Gap{Since: found, Missing: gtid.MustParse("0000000a-0000-0000-0000-000000000000:5-9")}
	whole, less := gtid.MustParse("0000000a-0000-0000-0000-000000000000:1-9"),
		gtid.MustParse("0000000a-0000-0000-0000-000000000000:1-8")
	at := func(minutes int) time.Time { return found.Add(time.Duration(minutes) * time.Minute) }
	for name, c := range map[string]struct {
		all    []Taken
		now    time.Time
		create bool
		wake   time.Duration
		closed bool
	}{
		"no backup": {now: at(0), create: true},
		"one of before": {all: []Taken{{Created: at(-60), Started: at(-60), Ended: at(-50),
			Completed: true}}, now: at(1), create: true},
		"one that began before and goes on": {all: []Taken{{Created: at(-2), Started: at(-1)}},
			now: at(1), create: true},
		"one that began before and ends now": {all: []Taken{{Created: at(-2), Started: at(-1), Ended: at(1),
			Completed: true}}, now: at(1), create: true},
		"one that waits since before": {all: []Taken{{Created: at(-2)}}, now: at(1)},
		"one that goes on":            {all: []Taken{{Created: at(0), Started: at(1)}}, now: at(9)},
		"one that is complete": {all: []Taken{{Created: at(0), Started: at(0), Ended: at(9),
			Completed: true, Holds: &whole}}, now: at(9), closed: true},
		"one that is complete, of which nobody knows what it holds": {all: []Taken{{Created: at(0), Started: at(0),
			Ended: at(9), Completed: true}}, now: at(9), closed: true},
		"one that is complete and lacks a part of it": {all: []Taken{{Created: at(0), Started: at(0), Ended: at(9),
			Completed: true, Holds: &less}}, now: at(12), wake: 7 * time.Minute},
		"one that has just failed": {all: []Taken{{Created: at(0), Ended: at(2)}}, now: at(5),
			wake: 7 * time.Minute},
		"one that has failed for long": {all: []Taken{{Created: at(0), Ended: at(2)}}, now: at(12), create: true},
		"two that failed": {all: []Taken{{Created: at(0), Ended: at(2)},
			{Created: at(12), Ended: at(13)}}, now: at(23), wake: 10 * time.Minute},
		"one of before that failed": {all: []Taken{{Created: at(-9), Ended: at(-1)}},
			now: at(0), create: true},
	} {
		t.Run(name, func(t *testing.T) {
			if create, wake := AfterGap(gap, c.now, c.all); create != c.create || wake != c.wake {
				t.Errorf("create %t, wake %s", create, wake)
			}
			if closed := GapClosed(gap, c.all); closed != c.closed {
				t.Errorf("closed %t", closed)
			}
		})
	}
	var all []Taken
	for i := range 20 {
		all = append(all, Taken{Created: at(i), Ended: at(i)})
	}
	if _, wake := AfterGap(gap, at(19), all); wake != maxGapPause {
		t.Errorf("after twenty failures it pauses for %s", wake)
	}
}

// A backup that was taken before the archive began lacks what was written until then, and nobody has it.
func TestWhenNoBackupOfBeforeGoesWithTheArchive(t *testing.T) {
	ended := []Taken{{Completed: true}}
	for name, c := range map[string]struct {
		goes Goes
		all  []Taken
		want bool
	}{
		"it has not begun":                   {goes: Goes{}},
		"nobody says where it goes now":      {goes: Goes{Before: "a"}},
		"it goes on":                         {goes: Goes{Before: "a", Now: "a", Began: true}},
		"it goes elsewhere":                  {goes: Goes{Before: "a", Now: "b", Began: true}, want: true},
		"it goes elsewhere, from the first":  {goes: Goes{Before: "a", Now: "b", FromBeginning: true}, want: true},
		"it begins":                          {goes: Goes{Now: "a"}, want: true},
		"it begins with the Cluster":         {goes: Goes{Now: "a", FromBeginning: true}},
		"... while a backup goes on":         {goes: Goes{Now: "a", FromBeginning: true}, all: []Taken{{}}},
		"... late, after a backup had ended": {goes: Goes{Now: "a", FromBeginning: true}, all: ended, want: true},
		"an older release had it begin":      {goes: Goes{Now: "a", Began: true}, all: ended},
	} {
		if got := c.goes.Moves(c.all); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
