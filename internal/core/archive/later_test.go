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
