package archive

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// TestABackupThatWentOnDuringAFailoverIsOfTheLaterEpoch: it was begun in epoch 1, and holds
// what the primary of epoch 2 wrote.
func TestABackupThatWentOnDuringAFailoverIsOfTheLaterEpoch(t *testing.T) {
	const a, b = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
	archived := Archive{Branches: []Branch{
		{Epoch: 1, ServerUUID: a},
		{Epoch: 2, ServerUUID: b, Start: gtid.MustParse(a + ":1-10")},
	}}
	base := func(end string) Base { return Base{Epoch: 1, End: gtid.MustParse(end), Time: time.Unix(1, 0)} }
	if s := Select(archived, base(a+":1-10,"+b+":1-3"), Target{}, nil); s.Refusal != nil {
		t.Errorf("refused: %v", s.Refusal)
	}
	for _, end := range []string{a + ":1-11", a + ":1-11," + b + ":1-3"} {
		if s := Select(archived, base(end), Target{}, nil); s.Refusal == nil || s.Refusal.Reason != BackupNotOnBranch {
			t.Errorf("%s: lost in the failover, and not refused: %+v", end, s)
		}
		if s := Select(archived, base(end), Target{Kind: Immediate}, nil); s.Refusal != nil {
			t.Errorf("%s: refused without a replay: %v", end, s.Refusal)
		}
	}
}

// TestABackupIsOfTheEpochThatItsDataAreOf, whatever epoch it names: the status from which that
// was taken is older or newer than what the donor had.
func TestABackupIsOfTheEpochThatItsDataAreOf(t *testing.T) {
	const (
		a = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
		b = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
		c = "cccccccc-cccc-cccc-cccc-cccccccccccc"
	)
	archived := Archive{Branches: []Branch{
		{Epoch: 1, ServerUUID: a},
		{Epoch: 2, ServerUUID: b, Start: gtid.MustParse(a + ":1-10")},
		// c wrote 1-8 in its epoch before its start was told.
		{Epoch: 3, ServerUUID: c, Start: gtid.MustParse(a + ":1-10," + b + ":1-5," + c + ":1-8")},
		// b is primary again, and so is what it alone had of its first epoch.
		{Epoch: 4, ServerUUID: b, Start: gtid.MustParse(a + ":1-10," + b + ":1-9," + c + ":1-9")},
	}}
	for _, tc := range []struct {
		name  string
		epoch int64
		end   string
		lost  string
	}{
		{"begun in 1, and it ended in 3 before the start was told", 1, a + ":1-10," + b + ":1-5," + c + ":1-8", ""},
		{"begun in 1, and it ended in 3 with what 4 lost", 1, a + ":1-10," + b + ":1-5," + c + ":1-10", c + ":10"},
		{"begun in 1, and it ended in 4", 1, a + ":1-10," + b + ":1-9," + c + ":1-9", ""},
		{"of 2, with what 3 lost of 2 and 4 has again", 2, a + ":1-10," + b + ":1-7", ""},
		{"of 2, with what 2 lost of 1", 2, a + ":1-11," + b + ":1-3", a + ":11"},
		{"said to be of 2, taken of an instance that had not followed yet", 2, a + ":1-11", a + ":11"},
		{"said to be of 4, taken of an instance that had not followed yet", 4, a + ":1-10," + b + ":1-5," +
			c + ":1-10", c + ":10"},
		{"said to be of 2, and nothing is lost", 2, a + ":1-9", ""},
	} {
		s := Select(archived, Base{Epoch: tc.epoch, End: gtid.MustParse(tc.end), Time: time.Unix(1, 0)},
			Target{Kind: ToGTIDs, GTIDs: gtid.MustParse(tc.end)}, nil)
		switch {
		case tc.lost == "" && s.Refusal != nil:
			t.Errorf("%s: refused: %v", tc.name, s.Refusal)
		case tc.lost != "" && (s.Refusal == nil || s.Refusal.Reason != BackupNotOnBranch ||
			!s.Refusal.GTIDs.Equal(gtid.MustParse(tc.lost))):
			t.Errorf("%s: %s is lost, and it says %+v", tc.name, tc.lost, s)
		}
	}
}

// TestWhatThePrimaryWasGivenWithItsNumberIsOnTheLine: somebody has the primary execute the
// transactions of another server under their own numbers, long after its promotion. A backup
// that holds them is no backup of a lost branch, also when the part that had them has expired.
func TestWhatThePrimaryWasGivenWithItsNumberIsOnTheLine(t *testing.T) {
	const a, b, x = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb",
		"eeeeeeee-eeee-eeee-eeee-eeeeeeeeeeee"
	given := Part{Epoch: 2, Sequence: 1, Before: gtid.MustParse(a + ":1-10"),
		GTIDs: gtid.MustParse(b + ":1," + x + ":1-5")}
	next := Part{Epoch: 2, Sequence: 2, Before: given.Before.Union(given.GTIDs), GTIDs: gtid.MustParse(b + ":2-3")}
	archived := Archive{Branches: []Branch{
		{Epoch: 1, ServerUUID: a, Numbers: OwnNumbers},
		{Epoch: 2, ServerUUID: b, Numbers: OwnNumbers, Start: gtid.MustParse(a + ":1-10"),
			Held: gtid.MustParse(a + ":1-10")},
	}}
	base := func(end string) Base { return Base{Epoch: 2, End: gtid.MustParse(end), Time: time.Unix(1, 0)} }
	for _, parts := range [][]Part{{given, next}, {next}} {
		archived.Parts = parts
		if s := Select(archived, base(a+":1-10,"+b+":1,"+x+":1-5"), Target{}, nil); s.Refusal != nil {
			t.Errorf("%d parts: refused: %v", len(parts), s.Refusal)
		}
		// What the primary never had is of a replica that somebody wrote to.
		if s := Select(archived, base(a+":1-10,"+b+":1,"+x+":6"), Target{}, nil); s.Refusal == nil ||
			s.Refusal.Reason != BackupNotOnBranch || !s.Refusal.GTIDs.Equal(gtid.MustParse(x+":6")) {
			t.Errorf("%d parts: not refused: %+v", len(parts), s)
		}
	}
}

// TestABranchThatCameLateCutsNothingOff: a lost 9 and 10 when b was promoted, and b died while
// its branch was being stored; a went on with 9 and 10 behind its own first branch.
func TestABranchThatCameLateCutsNothingOff(t *testing.T) {
	const a, b = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
	all := gtid.MustParse(a + ":1-10")
	archived := Archive{
		Branches: []Branch{
			{Epoch: 1, ServerUUID: a},
			{Epoch: 2, ServerUUID: b, Start: gtid.MustParse(a + ":1-8"), Held: gtid.MustParse(a + ":1-8"), After: 1},
			{Epoch: 4, ServerUUID: a, Start: all, Held: all, After: 1},
		},
		Parts: []Part{
			{Epoch: 1, Sequence: 1, GTIDs: all, Transactions: 10},
			{Epoch: 2, Sequence: 1, Before: gtid.MustParse(a + ":1-8"),
				GTIDs: gtid.MustParse(b + ":1"), Transactions: 1},
			{Epoch: 4, Sequence: 1, Before: all, GTIDs: gtid.MustParse(a + ":11"), Transactions: 1},
		},
	}
	want := gtid.MustParse(a + ":1-11")
	if s := Select(archived, Base{Epoch: 1, End: gtid.MustParse(a + ":1-5")}, Target{}, nil); s.Refusal != nil ||
		!s.Plan.Set.Equal(want) {
		t.Errorf("%s instead of %s, refused: %v", s.Plan.Set, want, s.Refusal)
	}
	archived.Branches[2].After = 2 // it was known
	if s := Select(archived, Base{Epoch: 1, End: gtid.MustParse(a + ":1-5")}, Target{}, nil); s.Refusal == nil {
		t.Errorf("%s is replayed, though 2 lost a part of it", s.Plan.Set)
	}
}

// TestAPrimaryWithoutABranchGaveItsOwnNumbers: a was primary in epochs 1 and 3 and archived in
// neither; a backup of 3 was said to be of 1, for the status had been set back. In a group, the
// numbers of 1 may have been lost and given again.
func TestAPrimaryWithoutABranchGaveItsOwnNumbers(t *testing.T) {
	const a, b = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
	archived := Archive{Branches: []Branch{
		{Epoch: 2, ServerUUID: b, Start: gtid.MustParse(a + ":1-10"), Numbers: OwnNumbers},
		{Epoch: 5, ServerUUID: b, Start: gtid.MustParse(a + ":1-30," + b + ":1-5"), Numbers: OwnNumbers, After: 2},
	}}
	base := Base{Epoch: 1, End: gtid.MustParse(a + ":1-20," + b + ":1-5"), Time: time.Unix(1, 0)}
	if s := Select(archived, base, Target{}, nil); s.Refusal != nil {
		t.Errorf("refused: %v", s.Refusal)
	}
	base.End = gtid.MustParse(a + ":1-31")
	if s := Select(archived, base, Target{}, nil); s.Refusal == nil || !s.Refusal.GTIDs.Equal(gtid.MustParse(a+":31")) {
		t.Errorf("lost, and not refused: %+v", s)
	}
	for i := range archived.Branches {
		archived.Branches[i].Numbers = a // the group's name
	}
	base.End = gtid.MustParse(a + ":1-20")
	if s := Select(archived, base, Target{}, nil); s.Refusal == nil ||
		!s.Refusal.GTIDs.Equal(gtid.MustParse(a+":11-20")) {
		t.Errorf("a group has given numbers again, and it is not refused: %+v", s)
	}
}

// TestWhatNobodyKnowsOfARecoveryIsNotTakenForTheSame holds where the status was set back and mended, so that nobody
// knows what was held until epoch 4. A branch of epoch 4 tells what of that is archived; where there is none, nothing
// is.
func TestWhatNobodyKnowsOfARecoveryIsNotTakenForTheSame(t *testing.T) {
	const g = "99999999-9999-9999-9999-999999999999"
	numbers := func(text string) gtid.Set { return gtid.MustParse(g + ":" + text) }
	for before, isKnown := range map[int64]bool{3: false, 4: true} {
		branches := []Branch{{Epoch: 1, ServerUUID: "a", Numbers: g},
			{Epoch: before, ServerUUID: "b", Numbers: g, After: 1, Start: numbers("1-8"), Held: numbers("1-6")}}
		parts := []Part{{Epoch: 1, Sequence: 1, GTIDs: numbers("1-6"), Transactions: 6},
			{Epoch: before, Sequence: 1, Before: numbers("1-6"), GTIDs: numbers("7-8"), Transactions: 2}}
		w := Writer{Epoch: 5, ServerUUID: "b", Group: g, Recoveries: []core.GroupRecovery{{Epoch: 4}}}
		held := w.Held(branches[1], parts[1], numbers("1-8"))
		if isKnown != held.Equal(numbers("1-8")) || isKnown == held.IsEmpty() {
			t.Errorf("behind epoch %d no part of %s is needed", before, held)
		}
		a := Archive{Branches: append(branches, w.Branch(branches[1], numbers("1-8"), held, at(0))), Parts: parts}
		s := Select(a, Base{Epoch: 1, End: numbers("1-5")}, Target{}, nil)
		isRefused := s.Refusal != nil && s.Refusal.Reason == BackupNotOnBranch
		if isKnown == isRefused || isKnown && !s.Plan.Set.Equal(numbers("1-8")) {
			t.Errorf("behind epoch %d: %+v", before, s)
		}
	}
}

// TestARecoveredGroupGivesNumbersAgain: b went on with 1-6 when a was lost, which had archived 7,
// and gave 7 to another transaction before its branch began.
func TestARecoveredGroupGivesNumbersAgain(t *testing.T) {
	const g = "99999999-9999-9999-9999-999999999999"
	numbers := func(text string) gtid.Set { return gtid.MustParse(g + ":" + text) }
	archived := Archive{Branches: []Branch{
		{Epoch: 1, ServerUUID: "a", Numbers: g},
		{Epoch: 3, ServerUUID: "b", Numbers: g, After: 1, Start: numbers("1-8"), Held: numbers("1-6"),
			Recoveries: []core.GroupRecovery{{Epoch: 2, Held: numbers("1-6")}}},
		{Epoch: 4, ServerUUID: "c", Numbers: g, After: 3, Start: numbers("1-9"), Held: numbers("1-9"),
			Recoveries: []core.GroupRecovery{{Epoch: 2, Held: numbers("1-6")}}},
	}, Parts: []Part{
		{Epoch: 1, Sequence: 1, GTIDs: numbers("1-7"), Transactions: 7},
		{Epoch: 3, Sequence: 1, Before: numbers("1-6"), GTIDs: numbers("7-9"), Transactions: 3},
	}}
	s := Select(archived, Base{Epoch: 1, End: numbers("1-5")}, Target{}, nil)
	if s.Refusal != nil || len(s.Plan.Steps) != 2 || !s.Plan.Steps[0].Take.Equal(numbers("6")) ||
		!s.Plan.Steps[1].Take.Equal(numbers("7-9")) {
		t.Errorf("from a backup of before: %+v", s)
	}
	if s := Select(archived, Base{Epoch: 1, End: numbers("1-7")}, Target{}, nil); s.Refusal == nil ||
		s.Refusal.Reason != BackupNotOnBranch || !s.Refusal.GTIDs.Equal(numbers("7")) {
		t.Errorf("from a backup that holds the lost 7: %+v", s)
	}
	if s := Select(archived, Base{Epoch: 3, End: numbers("1-7")}, Target{}, nil); s.Refusal != nil ||
		!s.Plan.Set.Equal(numbers("1-9")) {
		t.Errorf("from a backup that holds the other 7: %+v", s)
	}
	if lost, _ := Lost(archived); len(lost) != 1 || lost[0].Epoch != 1 || !lost[0].GTIDs.Equal(numbers("7")) {
		t.Errorf("lost is %+v", lost)
	}
	w := Writer{Recoveries: archived.Branches[1].Recoveries}
	if held := w.Held(archived.Branches[0], archived.Parts[0], numbers("1-8")); !held.Equal(numbers("1-6")) {
		t.Errorf("of the archive b needs no part of %s", held)
	}
}
