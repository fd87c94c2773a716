package core

import (
	"testing"
	"time"
)

func TestAnAmountForetellsItsEnd(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		done, of int64
		took     time.Duration
		rate     int64
		left     time.Duration
		percent  int
	}{
		"a quarter":                {25, 100, 10 * time.Second, 2, 30 * time.Second, 25},
		"less than one a second":   {5, 10, 10 * time.Second, 0, 10 * time.Second, 50},
		"all":                      {100, 100, 10 * time.Second, 10, 0, 100},
		"more than was expected":   {110, 100, 10 * time.Second, 11, 0, 100},
		"nothing yet":              {0, 100, 10 * time.Second, 0, -1, 0},
		"too young for a forecast": {50, 100, time.Second / 2, 0, -1, 50},
		"of nothing":               {0, 0, time.Minute, 0, -1, 0},
	} {
		now := began.Add(c.took)
		a := AmountAt(c.done, c.of, began, now)
		left := time.Duration(-1)
		if !a.Ends.IsZero() {
			left = a.Ends.Sub(now)
		}
		if a.PerSecond != c.rate || left != c.left || a.Percent() != c.percent {
			t.Errorf("%s: %d/s, %s left, %d%%", name, a.PerSecond, left, a.Percent())
		}
	}
}

func TestARestoreIsWorthAWordAtEachPercent(t *testing.T) {
	one := Restore{Backup: "b", Stage: RestoreFiles, Files: Amount{Done: 1000, Of: 100000}}
	less, more, passed, staged, lacking := one, one, one, one, one
	lacking.Lacking = []string{"shop.sessions"}
	less.Files.Done, less.Files.PerSecond = 1999, 7
	more.Files.Done = 2000
	passed.PassedOver = []PassedOver{{"c", "PartMissing"}}
	staged.Stage = RestoreReplay
	if !one.Same(&less) || one.Same(&more) || one.Same(&passed) || one.Same(&staged) ||
		one.Same(&lacking) || one.Same(nil) {
		t.Error("it says a word at another time")
	}
}
