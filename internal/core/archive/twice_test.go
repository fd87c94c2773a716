package archive

import "testing"

// TestABackupOfNumbersThatTheirServerGaveTwiceIsRefused holds that a backup is no base if it holds numbers that their
// server lost and gave again: it archived a1-10 in epoch 7, its disk lost a8-10, and it was promoted in epoch 8 all
// the same.
func TestABackupOfNumbersThatTheirServerGaveTwiceIsRefused(t *testing.T) {
	a, b := set("a1").Sources()[0], set("b1").Sources()[0]
	archived := Archive{
		Branches: []Branch{
			{Epoch: 7, ServerUUID: a, Numbers: OwnNumbers},
			{Epoch: 8, ServerUUID: a, Numbers: OwnNumbers, After: 7, Start: set("a1-7"), Held: set("a1-7")},
		},
		Parts: []Part{part(7, 1, "", "a1-10", 1, 10), part(8, 1, "a1-7", "a8-15", 20, 28)},
	}
	for i := range archived.Parts {
		archived.Parts[i].ServerUUID = a
	}
	later := archived
	later.Branches = append(archived.Branches[:2:2], Branch{Epoch: 9, ServerUUID: b, Numbers: OwnNumbers, After: 8,
		Start: set("a1-15"), Held: set("a1-15")})
	for name, all := range map[string]Archive{"it is the primary": archived, "another followed it": later} {
		for _, c := range []struct {
			end         string
			epoch       int64
			lost, steps string
		}{
			{"a1-5", 7, "", "7/1 " + set("a6-7").String() + "; 8/1 " + set("a8-15").String()},
			{"a1-7", 7, "", "8/1 " + set("a8-15").String()},
			{"a1-10", 7, "a8-10", ""},
			{"a1-9", 7, "a8-9", ""},
			{"a1-10", 8, "", "8/1 " + set("a11-15").String()}, // the new ones
		} {
			got := Select(all, Base{Epoch: c.epoch, End: set(c.end), Time: at(19)}, Target{}, nil)
			switch {
			case c.lost == "" && (got.Refusal != nil || stepsText(got.Plan) != c.steps):
				t.Errorf("%s, %s of %d: %v, %s", name, c.end, c.epoch, got.Refusal, stepsText(got.Plan))
			case c.lost != "" && (got.Refusal == nil || got.Refusal.Reason != BackupNotOnBranch ||
				!got.Refusal.GTIDs.Equal(set(c.lost))):
				t.Errorf("%s, %s of %d: it says %v", name, c.end, c.epoch, got.Refusal)
			}
		}
	}
	archived.Parts = archived.Parts[1:] // expired: then a part tells of it that stood behind them
	archived.Parts = append(archived.Parts, part(7, 2, "a1-10", "c1", 11, 11))
	archived.Parts[1].ServerUUID = a
	got := Select(archived, Base{Epoch: 7, End: set("a1-10"), Time: at(19)}, Target{}, nil)
	if got.Refusal == nil || got.Refusal.Reason != BackupNotOnBranch {
		t.Errorf("its part has expired, and it says %v", got.Refusal)
	}
}
