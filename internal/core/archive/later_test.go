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

// cutOff is an archive whose former primary was cut off and committed 11 once more, later than the others
// did, which had it from it. It stored that when it was back: the next one found in the archive what is held.
func cutOff(held string, next Part) Archive {
	return Archive{
		Branches: []Branch{{Epoch: 5, Start: set("a1-3"), Held: set("a1-3")},
			{Epoch: 6, After: 5, Start: set("a1-15"), Held: set(held)}},
		Parts: []Part{part(5, 1, "a1-3", "a4-10", 1, 6.5), part(5, 2, "a1-10", "a11", 16.7, 16.7), next,
			part(6, 2, "a1-20", "a21", 17, 17)}}
}

// The replay to a time between goes on with what the next primary wrote, if that found nothing of it.
func TestATimeBehindWhatTheFormerPrimaryStoredLate(t *testing.T) {
	a := cutOff("a1-10", part(6, 1, "a1-10", "a11-20", 8, 15.5))
	for end, want := range map[float64]string{15.57: "a1-20", 17: "a1-21"} {
		got := Select(a, Base{Epoch: 5, End: set("a1-3"), Time: at(0)}, Target{Kind: ToTime, Time: at(end)}, nil)
		if got.Refusal != nil || !got.Plan.Set.Equal(set(want)) {
			t.Errorf("to %v: %s, refused %v; wanted %s", end, got.Plan.Set, got.Refusal, want)
		}
	}
}

// So it is from a backup that holds what the former primary stored late: the next one committed it before that time,
// and a restore from an earlier backup holds it, too.
func TestABackupOfWhatTheFormerPrimaryStoredLate(t *testing.T) {
	a := cutOff("a1-10", part(6, 1, "a1-10", "a11-20", 8, 15.5))
	for epoch, end := range map[int64]string{5: "a1-3", 6: "a1-14"} {
		got := Select(a, Base{Epoch: epoch, End: set(end), Time: at(0)}, Target{Kind: ToTime, Time: at(15.57)}, nil)
		if got.Refusal != nil || !got.Plan.Set.Equal(set("a1-20")) {
			t.Errorf("from %s: %s, refused %v", end, got.Plan.Set, got.Refusal)
		}
	}
}

// The former primary stores after the next one had begun its branch what it had committed before, and what
// the next one applied later: to a time between it counts as the former one committed it.
func TestATimeBeforeTheNextPrimaryAppliedWhatWasStoredLate(t *testing.T) {
	late := part(1, 2, "a1-3", "a4-6", 4, 6)
	a := Archive{
		Branches: []Branch{{Epoch: 1}, {Epoch: 2, After: 1, Start: set("a1-6"), Held: set("a1-3")}},
		Parts: []Part{part(1, 1, "", "a1-3", 1, 3), late,
			part(2, 1, "a1-3", "a4-6 b1", 8, 9)}}
	read := map[Key][]Transaction{late.Key(): {{set("a4"), at(4)}, {set("a5"), at(5)}, {set("a6"), at(6)}},
		a.Parts[2].Key(): {{set("a4"), at(8)}, {set("a5"), at(8)}, {set("a6"), at(8)}, {set("b1"), at(9)}}}
	for end, want := range map[float64]string{5: "a1-5", 5.5: "a1-5", 7: "a1-6", 8.5: "a1-6", 9: "a1-6 b1"} {
		got := Select(a, Base{Epoch: 1, Time: at(0)}, Target{Kind: ToTime, Time: at(end)}, read)
		if got.Refusal != nil || got.Read != nil || !got.Plan.Set.Equal(set(want)) {
			t.Errorf("to %v: %s, refused %v; wanted %s", end, got.Plan.Set, got.Refusal, want)
		}
	}
}

// If it found it, nobody has another time for it: a time between is refused, with those around it.
func TestATimeOfWhichTwoPrimariesDoNotAgree(t *testing.T) {
	a := cutOff("a1-11", part(6, 1, "a1-11", "a12-20", 8, 15.5))
	for end, want := range map[float64]string{7.9: "a1-10", 8: "", 15.57: "", 16.6: "", 16.7: "a1-20", 17: "a1-21"} {
		got := Select(a, Base{Epoch: 5, End: set("a1-3"), Time: at(0)}, Target{Kind: ToTime, Time: at(end)}, nil)
		switch r := got.Refusal; {
		case want == "" && (r == nil || r.Reason != TargetAmbiguous || !r.Nearest.Equal(at(7.999999)) ||
			!r.Later.Equal(at(16.7))):
			t.Errorf("to %v: %s, refused %v", end, got.Plan.Set, r)
		case want != "" && (r != nil || !got.Plan.Set.Equal(set(want))):
			t.Errorf("to %v: %s, refused %v; wanted %s", end, got.Plan.Set, r, want)
		}
	}
	got := Select(a, Base{Epoch: 6, End: set("a1-14"), Time: at(9)}, Target{Kind: ToTime, Time: at(15.57)}, nil)
	if r := got.Refusal; r == nil || r.Reason != TargetBeforeBackup || !r.Nearest.Equal(at(16.7)) {
		t.Errorf("of a backup that holds what was committed late: %+v", got)
	}
}

// What the next primary had committed by then is known from a part of which some is lost only when that is
// read.
func TestAPartOfWhichSomeWasLostIsReadBeforeATimeIsRefused(t *testing.T) {
	a := cutOff("a1-11", part(6, 1, "a1-11", "a12-20", 8, 15.5))
	a.Branches = append(a.Branches, Branch{Epoch: 7, After: 6, Start: set("a1-11 a13-20"), Held: set("a1-11 a13-20")})
	a.Parts = a.Parts[:3]
	a.Parts = append(a.Parts, part(7, 1, "a1-11 a13-20", "b1", 18, 18))
	base, target := Base{Epoch: 5, End: set("a1-3"), Time: at(0)}, Target{Kind: ToTime, Time: at(8.5)}
	if got := Select(a, base, target, nil); got.Read == nil || got.Read.Pieces[0].Key() != (Key{6, 1}) {
		t.Fatalf("%+v", got)
	}
	got := Select(a, base, target, contents(a)) // 13 is of second 9
	if got.Refusal != nil || !got.Plan.Set.Equal(set("a1-10")) {
		t.Errorf("%s, refused %v", got.Plan.Set, got.Refusal)
	}
}

// A part that has to be read only to prove a time that a refusal names is no hindrance where it is damaged:
// the refusal is told without that time.
func TestWhatOnlyProvesATimeIsNeededForNothing(t *testing.T) {
	a := story()
	base := Base{Epoch: 1, End: set("a1-3"), Time: at(3.5)}
	got := Select(a, base, Target{Kind: ToTime, Time: at(2)}, nil)
	if got.Read == nil || got.Otherwise == nil || got.Otherwise.Reason != TargetBeforeBackup ||
		!got.Otherwise.Nearest.IsZero() {
		t.Fatalf("%+v, otherwise %+v", got, got.Otherwise)
	}
	got = Select(a, base, Target{Kind: ToTime, Time: at(2)}, contents(a))
	if got.Refusal == nil || !got.Refusal.Nearest.Equal(at(3.5)) || got.Otherwise != nil {
		t.Errorf("%+v", got)
	}
}

// TestTheLogProvesThatABackupIsOlderThanItsJobSaid where the clock of the Job was ahead, and nothing else does.
func TestTheLogProvesThatABackupIsOlderThanItsJobSaid(t *testing.T) {
	gap := func(behind ...Part) Archive { // a1-3 are archived, and a4 and a5 never were
		return Archive{Branches: []Branch{branch(1, "", ""), branch(3, "a1-8", "a1-8")},
			Parts: append([]Part{part(1, 1, "", "a1-3", 1, 3)}, behind...)}
	}
	six, later := part(1, 3, "a1-5", "a6", 6, 6), part(1, 4, "a1-6", "a7-8", 7, 8)
	run := RunsOf([]Part{six, later})
	for name, c := range map[string]struct {
		archive Archive
		holds   string
		target  float64
		refuse  core.Reason // "": it is restored, and holds want
		want    string
	}{
		"what was written behind it": {gap(six, later), "a1-5", 6, "", "a1-6"},
		"before that":                {gap(six, later), "a1-5", 5.9, TargetBeforeBackup, ""},
		"in the part behind it":      {gap(six, later), "a1-6", 7, "", "a1-7"},
		"in a run":                   {gap(run...), "a1-6", 7.5, "", "a1-7"},
		"a run begins behind it":     {gap(run...), "a1-5", 6.5, "", "a1-6"},
		"the clock went back": {gap(part(1, 3, "a1-5", "a6", 7, 7), part(1, 4, "a1-6", "a7", 6, 6)), "a1-5", 6,
			TargetBeforeBackup, ""},
		"the same in one part":    {gap(part(1, 3, "a1-5", "a6-7", 6, 9)), "a1-5", 7, TargetBeforeBackup, ""},
		"a later primary's log":   {gap(part(3, 1, "a1-8", "b1", 6, 6)), "a1-8", 6, TargetBeforeBackup, ""},
		"another gap behind it":   {gap(part(1, 5, "a1-6", "a7", 7, 7)), "a1-5", 7, PartMissing, ""},
		"the archive ends before": {gap(six), "a1-5", 6.5, PartMissing, ""},
	} {
		read := contents(gap(six, later))
		read[Key{1, 3}] = append(read[Key{1, 3}], Transaction{set("a7"), at(6.5)})
		if name == "the same in one part" {
			read[Key{1, 3}] = []Transaction{{set("a6"), at(9)}, {set("a7"), at(6)}}
		}
		base, target := Base{Epoch: 1, End: set(c.holds), Time: at(30)}, Target{Kind: ToTime, Time: at(c.target)}
		got := Select(c.archive, base, target, read)
		if got.Expand != nil {
			if err := c.archive.Expand(*got.Expand, []Part{six, later}); err != nil {
				t.Fatal(err)
			}
			got = Select(c.archive, base, target, read)
		}
		switch r := got.Refusal; {
		case c.refuse == "" && (r != nil || !got.Plan.Set.Equal(set(c.want)) || got.Plan.Reached.After(target.Time)):
			t.Errorf("%s: %s until %s, refused %v; wanted %s", name, got.Plan.Set, got.Plan.Reached, r, c.want)
		case c.refuse != "" && (r == nil || r.Reason != c.refuse):
			t.Errorf("%s: %+v, wanted %s", name, got, c.refuse)
		}
	}
}

// A group was told to go on with a member that held 1 to 5, and nobody saw whether it did: what the former primary
// archived beyond that may be other transactions. A restore to a time goes by when the next primary committed what
// stands under these numbers.
func TestATimeBehindWhatARecoveryGaveUp(t *testing.T) {
	former, next := part(2, 2, "a1-4", "a5-8", 5, 8), part(5, 1, "a1-5", "a6-8", 9, 11)
	a := Archive{
		Branches: []Branch{{Epoch: 2}, {Epoch: 5, After: 2, Start: set("a1-8"), Held: set("a1-5"),
			Recoveries: []core.GroupRecovery{{Epoch: 3, Held: set("a1-5")}, {Epoch: 4, Held: set("a1-8")}}}},
		Parts: []Part{part(2, 1, "", "a1-4", 1, 4), former, next}}
	read := map[Key][]Transaction{
		former.Key(): {{set("a5"), at(5)}, {set("a6"), at(6)}, {set("a7"), at(7)}, {set("a8"), at(8)}},
		next.Key():   {{set("a6"), at(9)}, {set("a7"), at(10)}, {set("a8"), at(11)}}}
	for end, want := range map[float64]string{5: "a1-5", 8: "a1-5", 9: "a1-6", 10.5: "a1-7", 11: "a1-8"} {
		got := Select(a, Base{Epoch: 2, Time: at(0)}, Target{Kind: ToTime, Time: at(end)}, read)
		if got.Refusal != nil || got.Read != nil || !got.Plan.Set.Equal(set(want)) {
			t.Errorf("to %v: %s, refused %v; wanted %s", end, got.Plan.Set, got.Refusal, want)
		}
	}
	if lost, _ := Lost(a); len(lost) != 1 || !lost[0].GTIDs.Equal(set("a6-8")) {
		t.Errorf("lost is %+v", lost)
	}
}
