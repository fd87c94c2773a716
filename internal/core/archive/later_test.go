package archive

import (
	"testing"

	"cnmsql.co/internal/core"
)

// TestABackupThatHoldsWhatIsLaterIsNone for a target, whatever its own clock says of it; nor is
// an archive of which a branch is missing replayed.
func TestABackupThatHoldsWhatIsLaterIsNone(t *testing.T) {
	unbranched := story()
	unbranched.Branches = unbranched.Branches[:1]
	behind := Base{Epoch: 1, End: set("a1-4"), Time: at(3)} // a4 is of second 4
	for name, c := range map[string]struct {
		archive Archive
		base    Base
		target  Target
		refuse  core.Reason
		near    float64
	}{
		"its own time is before the target, and what it holds is not": {
			story(), behind, Target{Kind: ToTime, Time: at(3.5)}, TargetBeforeBackup, 6},
		"of a part it holds what is not later": {story(), behind, Target{Kind: ToTime, Time: at(4)}, "", 0},
		"a branch is missing, and its parts are there": {
			unbranched, behind, Target{Kind: Latest}, BranchMissing, 0},
		"a branch is missing, and nothing is replayed": {unbranched, behind, Target{Kind: Immediate}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := Select(c.archive, c.base, c.target, contents(c.archive)).Refusal
			switch {
			case c.refuse == "" && got != nil:
				t.Errorf("refused: %v", got)
			case c.refuse != "" && (got == nil || got.Reason != c.refuse):
				t.Errorf("%v, want %s", got, c.refuse)
			case c.near != 0 && !got.Nearest.Equal(at(c.near)):
				t.Errorf("the nearest time is %v", got.Nearest)
			}
		})
	}
}

// The former primary is cut off, commits once more, later than the others do, what they had from it, and
// stores that when it is back: the replay to a time between goes on with what the next primary wrote.
func TestATimeBehindWhatTheFormerPrimaryStoredLate(t *testing.T) {
	part := func(epoch, sequence int64, before, holds string, n int64, first, last float64) Part {
		return Part{Epoch: epoch, Sequence: sequence, Before: set(before), GTIDs: set(holds), Transactions: n,
			First: at(first), Last: at(last)}
	}
	a := Archive{
		Branches: []Branch{{Epoch: 5, Start: set("a1-3"), Held: set("a1-3")},
			{Epoch: 6, After: 5, Start: set("a1-15"), Held: set("a1-10")}},
		Parts: []Part{part(5, 1, "a1-3", "a4-10", 7, 1, 6.5), part(5, 2, "a1-10", "a11", 1, 16.7, 16.7),
			part(6, 1, "a1-10", "a11-20", 10, 8, 15.5), part(6, 2, "a1-20", "a21", 1, 17, 17)}}
	for end, want := range map[float64]string{15.57: "a1-20", 17: "a1-21"} {
		got := Select(a, Base{Epoch: 5, End: set("a1-3"), Time: at(0)}, Target{Kind: ToTime, Time: at(end)}, nil)
		if got.Refusal != nil || !got.Plan.Set.Equal(set(want)) {
			t.Errorf("to %v: %s, refused %v; wanted %s", end, got.Plan.Set, got.Refusal, want)
		}
	}
}

// The former primary stores after the next one had begun its branch what it had committed before, and what
// the next one applied later: to a time between it counts as the former one committed it.
func TestATimeBeforeTheNextPrimaryAppliedWhatWasStoredLate(t *testing.T) {
	part := func(epoch, sequence int64, before, holds string, n int64, first, last float64) Part {
		return Part{Epoch: epoch, Sequence: sequence, Before: set(before), GTIDs: set(holds), Transactions: n,
			First: at(first), Last: at(last)}
	}
	late := part(1, 2, "a1-3", "a4-6", 3, 4, 6)
	a := Archive{
		Branches: []Branch{{Epoch: 1}, {Epoch: 2, After: 1, Start: set("a1-6"), Held: set("a1-3")}},
		Parts: []Part{part(1, 1, "", "a1-3", 3, 1, 3), late,
			part(2, 1, "a1-3", "a4-6 b1", 4, 8, 9)}}
	read := map[Key][]Transaction{late.Key(): {{set("a4"), at(4)}, {set("a5"), at(5)}, {set("a6"), at(6)}},
		a.Parts[2].Key(): {{set("a4"), at(8)}, {set("a5"), at(8)}, {set("a6"), at(8)}, {set("b1"), at(9)}}}
	for end, want := range map[float64]string{5: "a1-5", 5.5: "a1-5", 7: "a1-6", 8.5: "a1-6", 9: "a1-6 b1"} {
		got := Select(a, Base{Epoch: 1, Time: at(0)}, Target{Kind: ToTime, Time: at(end)}, read)
		if got.Refusal != nil || got.Read != nil || !got.Plan.Set.Equal(set(want)) {
			t.Errorf("to %v: %s, refused %v; wanted %s", end, got.Plan.Set, got.Refusal, want)
		}
	}
}
