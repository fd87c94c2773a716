package backup

import (
	"testing"
	"time"
)

func TestAStepToALaterSeriesAsksForOneBackup(t *testing.T) {
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	of := func(version string, minutes int) Taken {
		return Taken{Created: at(minutes), Started: at(minutes), Ended: at(minutes + 1), Completed: true,
			Version: version}
	}
	old, all9 := of("8.4.6", -60), []string{"9.7.4", "9.7.4", "9.7.4"}
	for name, c := range map[string]struct {
		running []string
		all     []Taken
		create  bool
		wake    time.Duration
	}{
		"only of the older series":    {running: all9, all: []Taken{old}, create: true},
		"of two older series":         {running: all9, all: []Taken{of("8.0.45", -90), old}, create: true},
		"no backup":                   {running: all9},
		"none that is complete":       {running: all9, all: []Taken{{Created: at(-60), Ended: at(-59)}}},
		"one of the same series":      {running: all9, all: []Taken{old, of("9.7.1", -5)}},
		"one of a later series":       {running: all9, all: []Taken{of("10.7.0", -5)}},
		"one of an unknown series":    {running: all9, all: []Taken{old, of("", -70)}},
		"nobody knows what one runs":  {running: []string{"9.7.4", ""}, all: []Taken{old}},
		"one runs the older series":   {running: []string{"9.7.4", "8.4.6"}, all: []Taken{old}},
		"the primary runs the older":  {running: []string{"8.4.6", "9.7.4"}, all: []Taken{old}},
		"nobody runs":                 {all: []Taken{old}},
		"another release of the same": {running: []string{"8.4.7"}, all: []Taken{old}},
		"one goes on":                 {running: all9, all: []Taken{old, {Created: at(-2), Started: at(-1)}}},
		"one waits":                   {running: all9, all: []Taken{old, {Created: at(-2)}}},
		"one has just failed": {running: all9, all: []Taken{old, {Created: at(-4), Ended: at(-3)}},
			wake: 7 * time.Minute},
		"one has failed for long": {running: all9, all: []Taken{old, {Created: at(-14), Ended: at(-13)}},
			create: true},
		"one had failed before the old": {running: all9, all: []Taken{old, {Created: at(-90), Ended: at(-80)}},
			create: true},
	} {
		if create, wake := AfterStep(c.running, noon, c.all); create != c.create || wake != c.wake {
			t.Errorf("%s: create %t, wake %s", name, create, wake)
		}
	}
}
