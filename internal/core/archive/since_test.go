package archive

import (
	"slices"
	"testing"
	"time"
)

// TestTheEarliestMomentIsNotThatOfAClockThatWasBehind looks whether a backup leads to the moment that is told.
func TestTheEarliestMomentIsNotThatOfAClockThatWasBehind(t *testing.T) {
	for name, change := range map[string]func(*Holdings){
		"in the window":           func(*Holdings) {},
		"no backup is old enough": func(h *Holdings) { h.Window, h.Bases = 10000*time.Second, h.Bases[6:] },
	} {
		h := month(10)
		h.Bases[7].Point, h.Bases[7].Ended = at(250), at(251)
		change(&h)
		e := Expire(h)
		leads := slices.ContainsFunc(h.Bases, func(b Stored) bool {
			if slices.Contains(e.Bases, b.ID) {
				return false
			}
			base, target := Base{Epoch: b.Epoch, End: b.End, Time: b.Point}, Target{Kind: ToTime, Time: e.Since}
			return Select(h.Archive, base, target, nil).Refusal == nil
		})
		if !e.Since.Equal(at(600)) || !leads {
			t.Errorf("%s: all since %s, to which a backup leads: %t", name, e.Since, leads)
		}
	}
}
