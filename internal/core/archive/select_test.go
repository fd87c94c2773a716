package archive

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// set reads "a1-5 b2" as transactions of servers that are called by a letter.
func set(text string) gtid.Set {
	var all gtid.Set
	for _, word := range strings.Fields(text) {
		uuid := strings.Repeat(word[:1], 8) + "-" + strings.Repeat(strings.Repeat(word[:1], 4)+"-", 3) +
			strings.Repeat(word[:1], 12)
		all = all.Union(gtid.MustParse(uuid + ":" + word[1:]))
	}
	return all
}

// at is a moment, in seconds of the story.
func at(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second))).UTC()
}

func branch(epoch int64, start, held string) Branch {
	return Branch{Epoch: epoch, Start: set(start), Held: set(held)}
}

func part(epoch, sequence int64, before, gtids string, first, last float64) Part {
	p := Part{Epoch: epoch, Sequence: sequence, Before: set(before), GTIDs: set(gtids),
		First: at(first), Last: at(last)}
	p.Transactions = int64(p.GTIDs.Count())
	return p
}

// story: a wrote 1 to 6, b was promoted with 1 to 5 and wrote b1 to b4. A transaction a1 is
// committed in second 1, b1 in second 11.
func story() Archive {
	return Archive{
		Branches: []Branch{branch(1, "", ""), branch(3, "a1-5", "a1-5")},
		Parts: []Part{
			part(1, 1, "", "a1-3", 1, 3),
			part(1, 2, "a1-3", "a4-6", 4, 6),
			part(3, 1, "a1-5", "b1-2", 11, 12),
			part(3, 2, "a1-5 b1-2", "b3-4", 13, 14),
		},
	}
}

// contents are of all parts in a story.
func contents(a Archive) map[Key][]Transaction {
	out := map[Key][]Transaction{}
	for _, p := range a.Parts {
		list, _ := p.GTIDs.List(100)
		for i, id := range list {
			out[p.Key()] = append(out[p.Key()], Transaction{gtid.MustParse(id),
				p.First.Add(time.Duration(i) * time.Second)})
		}
	}
	return out
}

func stepsText(p Plan) string {
	var out []string
	for _, s := range p.Steps {
		last := s.Pieces[len(s.Pieces)-1]
		out = append(out, fmt.Sprintf("%d/%d %s", last.Epoch, last.Sequence, s.Take.Abbreviate(9)))
	}
	return strings.Join(out, "; ")
}

func toTime(seconds float64) Target { return Target{Kind: ToTime, Time: at(seconds)} }
func toGTIDs(ids string) Target     { return Target{Kind: ToGTIDs, GTIDs: set(ids)} }
func beforeGTIDs(ids string) Target { return Target{Kind: BeforeGTIDs, GTIDs: set(ids)} }

// selection is what is selected of the story's archive, after a change: steps, or a refusal.
type selection struct {
	change func(*Archive)
	base   Base // unless it is given, the backup of a1-2
	target Target
	steps  string // as "1/1 a3; 1/2 a4-5": the last piece of each, and what is taken of it
	refuse core.Reason
	near   float64
	later  float64
}

func (c selection) expect(t *testing.T) {
	a := story()
	if c.change != nil {
		c.change(&a)
	}
	if c.base.Epoch == 0 {
		c.base = Base{Epoch: 1, End: set("a1-2"), Time: at(2)}
	}
	got := Select(a, c.base, c.target, contents(a))
	if c.refuse == "" {
		if want := c.wantedSteps(); got.Refusal != nil || stepsText(got.Plan) != want {
			t.Errorf("got %s, refusal %v\nwant %s", stepsText(got.Plan), got.Refusal, want)
		}
		return
	}
	if got.Refusal == nil || got.Refusal.Reason != c.refuse ||
		c.near != 0 && !got.Refusal.Nearest.Equal(at(c.near)) ||
		c.later != 0 && !got.Refusal.Later.Equal(at(c.later)) {
		t.Fatalf("got %s, refusal %v", stepsText(got.Plan), got.Refusal)
	}
	t.Log(got.Refusal)
}

func (c selection) wantedSteps() string {
	var out []string
	for step := range strings.SplitSeq(c.steps, "; ") {
		if piece, ids, found := strings.Cut(step, " "); found {
			out = append(out, piece+" "+set(ids).Abbreviate(9))
		}
	}
	return strings.Join(out, "; ")
}

// TestSelect holds which parts a target needs, and how much of the last.
func TestSelect(t *testing.T) {
	for name, c := range map[string]selection{
		"the latest leaves out what was lost": {target: Target{Kind: Latest},
			steps: "1/1 a3; 1/2 a4-5; 3/1 b1-2; 3/2 b3-4"},
		"the backup alone":        {target: Target{Kind: Immediate}},
		"a time in a part":        {target: toTime(4.5), steps: "1/1 a3; 1/2 a4"},
		"a time on a transaction": {target: toTime(13), steps: "1/1 a3; 1/2 a4-5; 3/1 b1-2; 3/2 b3"},
		"a time of what was lost": {target: toTime(6), steps: "1/1 a3; 1/2 a4-5"},
		"the time of the backup":  {target: toTime(2)},
		"the time of the newest": {base: Base{Epoch: 3, End: set("a1-5 b1-3"), Time: at(13)},
			target: toTime(14), steps: "3/2 b4"},
		"a transaction":               {target: toGTIDs("a3"), steps: "1/1 a3"},
		"some of it is in the backup": {target: toGTIDs("a1-5 b1"), steps: "1/1 a3; 1/2 a4-5; 3/1 b1"},
		"what the backup ends with":   {target: toGTIDs("a1-2")},
		"before a transaction":        {target: beforeGTIDs("b2"), steps: "1/1 a3; 1/2 a4-5; 3/1 b1"},
		"before the first of a part":  {target: beforeGTIDs("b3"), steps: "1/1 a3; 1/2 a4-5; 3/1 b1-2"},
		"before the first of all":     {target: beforeGTIDs("a3")},
	} {
		t.Run(name, c.expect)
	}
}

// TestSelectRefuses holds that a target which cannot be reached is refused, with the nearest that can.
func TestSelectRefuses(t *testing.T) {
	for name, c := range map[string]selection{
		"a time before the backup":    {target: toTime(1), refuse: TargetBeforeBackup, near: 2},
		"a transaction of the backup": {target: toGTIDs("a1"), refuse: TargetBeforeBackup, near: 2},
		"before one of the backup":    {target: beforeGTIDs("a2"), refuse: TargetBeforeBackup, near: 2},
		"before nothing":              {target: Target{Kind: BeforeGTIDs}, refuse: TargetBeforeBackup, near: 2},
		"a time after the archive":    {target: toTime(14.5), refuse: TargetAfterArchive, near: 14},
		"a transaction that was lost": {target: toGTIDs("a6"), refuse: TargetLost, near: 3, later: 11},
		"one that was never archived": {target: beforeGTIDs("b5"), refuse: TargetNotArchived},
		"a backup of a lost branch":   {base: Base{Epoch: 1, End: set("a1-6"), Time: at(6)}, refuse: BackupNotOnBranch},
	} {
		t.Run(name, c.expect)
	}
}

// TestSelectOfAChangedArchive holds that what is missing refuses the targets behind it, and no others.
func TestSelectOfAChangedArchive(t *testing.T) {
	gap := func(a *Archive) { a.Parts[3] = part(3, 2, "a1-5 b1-3", "b4", 14, 14) }
	lacksLast := func(a *Archive) { a.Parts = append(a.Parts[:1:1], a.Parts[2:]...) }
	for name, c := range map[string]selection{
		"a backup before the archive": {
			change: func(a *Archive) {
				a.Parts[0].Before, a.Branches[0].Held, a.Branches[1].Start = set("c1-9"), set("c1-9"), set("a1-5 c1-9")
			},
			refuse: PartMissing, near: 2},
		"a part is missing": {change: func(a *Archive) { a.Parts = a.Parts[1:] },
			refuse: PartMissing, near: 2},
		"the last part of a branch is missing": {change: lacksLast, refuse: PartMissing, near: 3},
		"a time before the missing part":       {change: lacksLast, target: toTime(3), steps: "1/1 a3"},
		"a gap":                                {change: gap, refuse: ArchiveGap, near: 12},
		"before the gap":                       {change: gap, target: toGTIDs("b1"), steps: "1/1 a3; 1/2 a4-5; 3/1 b1"},
		"a backup behind the gap": {change: gap,
			base: Base{Epoch: 3, End: set("a1-5 b1-3"), Time: at(13)}, steps: "3/2 b4"},
		"a clock that went back": {change: func(a *Archive) { a.Parts[2].First, a.Parts[2].Last = at(3), at(4) },
			target: toTime(5), steps: "1/1 a3; 1/2 a4-5; 3/1 b1-2"},
		"what a new primary ships of the former one": {
			change: func(a *Archive) {
				a.Branches[1].Held = set("a1-3")
				a.Parts[1], a.Parts[2] = part(3, 1, "a1-3", "a4-5 b1-2", 9, 12), a.Parts[3]
				a.Parts = a.Parts[:3]
			},
			steps: "1/1 a3; 3/1 a4-5 b1-2; 3/2 b3-4"},
	} {
		t.Run(name, c.expect)
	}
}

// TestATimeInWhichNothingWasWritten is reached as far as the primary said that all is archived.
func TestATimeInWhichNothingWasWritten(t *testing.T) {
	whole := Mark{Epoch: 3, Until: at(100), Executed: set("a1-5 b1-4")}
	older, more, other, before := whole, whole, whole, whole
	older.Epoch, more.Executed, other.ServerUUID, before.Until = 1, set("a1-5 b1-5"), "other", at(13)
	for name, c := range map[string]struct {
		mark   *Mark
		target float64
		near   float64 // 0: it is reached
	}{
		"no mark":                      {nil, 50, 14},
		"within the mark":              {&whole, 50, 0},
		"at its end":                   {&whole, 100, 0},
		"behind it":                    {&whole, 101, 100},
		"of an epoch that has ended":   {&older, 50, 14},
		"of more than is archived":     {&more, 50, 14},
		"of another server":            {&other, 50, 14},
		"of before the last commit":    {&before, 50, 14},
		"the last commit, before that": {&before, 14, 0},
	} {
		a := story()
		a.Mark = c.mark
		got := Select(a, Base{Epoch: 1, End: set("a1-2"), Time: at(2)}, Target{Kind: ToTime, Time: at(c.target)}, nil)
		all := got.Plan.Set.Equal(set("a1-5 b1-4")) && got.Plan.Reached.Equal(at(14))
		switch {
		case c.near == 0 && (got.Refusal != nil || !all):
			t.Errorf("%s: %+v, %v", name, got.Plan, got.Refusal)
		case c.near > 0 && (got.Refusal == nil || got.Refusal.Reason != TargetAfterArchive ||
			!got.Refusal.Nearest.Equal(at(c.near))):
			t.Errorf("%s: %+v, %v", name, got.Plan, got.Refusal)
		}
	}
	holed := story()
	holed.Parts, holed.Mark = holed.Parts[:3], &whole
	got := Select(holed, Base{Epoch: 1, End: set("a1-2"), Time: at(2)}, Target{Kind: ToTime, Time: at(50)}, nil)
	if got.Refusal == nil || got.Refusal.Nearest.After(at(12)) {
		t.Errorf("a part is gone, and the mark vouches for it: %v", got.Refusal)
	}
}

func TestAMarkIsMadeAtMostEachMinute(t *testing.T) {
	for _, c := range []struct {
		rpo, since time.Duration
		due        bool
	}{
		{time.Second, 59 * time.Second, false}, {time.Second, time.Minute, true},
		{300 * time.Second, 299 * time.Second, false}, {300 * time.Second, 300 * time.Second, true},
	} {
		if due := (Pace{RPO: c.rpo}).MarkIsDue(at(0), at(c.since.Seconds())); due != c.due {
			t.Errorf("targetRPO %s, %s after the last one: %t", c.rpo, c.since, due)
		}
	}
	if !(Pace{RPO: time.Hour}).MarkIsDue(time.Time{}, at(0)) {
		t.Error("the first one waits")
	}
}

func TestThePartThatMayHoldTheEndIsAskedFor(t *testing.T) {
	a := story()
	base, target := Base{Epoch: 1, End: set("a1-2"), Time: at(2)}, Target{Kind: ToTime, Time: at(12.5)}
	a.Parts[2].Last = at(13)
	got := Select(a, base, target, nil)
	if got.Read == nil || got.Read.Pieces[0].Key() != (Key{1, 2}) && got.Read.Pieces[0].Key() != (Key{3, 1}) {
		t.Fatalf("got %+v", got)
	}
}

func TestAnEndThatIsNotInThePartLiesBehindIt(t *testing.T) {
	a := story() // a6, which is lost, is the one that is later than the target
	target := Target{Kind: ToTime, Time: at(5.5)}
	a.Parts[2].First, a.Parts[2].Last = at(5), at(5.2)
	a.Parts[3].First, a.Parts[3].Last = at(5.3), at(5.4)
	got := Select(a, Base{Epoch: 1, End: set("a1-2"), Time: at(2)}, target, contents(a))
	if got.Refusal == nil || got.Refusal.Reason != TargetAfterArchive {
		t.Errorf("got %s, refusal %v", stepsText(got.Plan), got.Refusal)
	}
}

func TestATransactionInPieces(t *testing.T) {
	a := Archive{Branches: []Branch{branch(1, "", "")}, Parts: []Part{part(1, 1, "", "", 0, 0),
		part(1, 2, "", "", 0, 0), part(1, 3, "", "a1", 1, 1), part(1, 4, "a1", "a2", 2, 2)}}
	a.Parts[0].Piece, a.Parts[1].Piece, a.Parts[2].Piece, a.Parts[2].Pieces = 1, 2, 3, 3
	got := Select(a, Base{Epoch: 1}, Target{Kind: ToGTIDs, GTIDs: set("a1")}, nil)
	if got.Refusal != nil || got.Read != nil || len(got.Plan.Steps) != 1 || len(got.Plan.Steps[0].Pieces) != 3 {
		t.Fatalf("got %+v", got)
	}
	for _, broken := range [][]Part{a.Parts[1:], {a.Parts[0], a.Parts[2], a.Parts[3]}} {
		a.Parts = broken
		if got := Select(a, Base{Epoch: 1}, Target{}, nil); got.Refusal == nil || got.Refusal.Reason != PartMissing ||
			len(got.Refusal.Parts) != 1 {
			t.Errorf("got %+v", got)
		}
	}
}

func TestLost(t *testing.T) {
	got, _ := Lost(story())
	if len(got) != 1 || got[0].Epoch != 1 || !got[0].GTIDs.Equal(set("a6")) || len(got[0].Steps) != 1 ||
		!got[0].Last.Equal(at(6)) {
		t.Errorf("got %+v", got)
	}
}

// followed is an archive of a cluster that followed an external server d: c-1 had 21 to 25 of it when c-2 was promoted
// without these, which received 21 to 24 from d after that, and more.
func followed() Archive {
	return Archive{
		Branches: []Branch{{Epoch: 1, Numbers: OwnNumbers},
			{Epoch: 2, After: 1, Start: set("d1-20"), Held: set("d1-20"), Numbers: OwnNumbers}},
		Parts: []Part{part(1, 1, "", "d1-25", 1, 25), part(2, 1, "d1-20", "d21-24 d26-30", 22, 31)},
	}
}

// What the next primary received from the server that is followed as well is not lost, and a backup that holds it is
// on the line.
func TestWhatTheNextFollowerReceivedAgainIsNotLost(t *testing.T) {
	if got, _ := Lost(followed()); len(got) != 1 || got[0].Epoch != 1 || !got[0].GTIDs.Equal(set("d25")) {
		t.Errorf("lost is %+v", got)
	}
	own, group := followed(), followed()
	own.Branches[0].ServerUUID = set("d1").Sources()[0] // which may have lost them, and given the numbers again
	if got, _ := Lost(own); len(got) != 1 || !got[0].GTIDs.Equal(set("d21-25")) {
		t.Errorf("of the former primary's own it is %+v", got)
	}
	for i := range group.Branches {
		group.Branches[i].Numbers = set("d1").Sources()[0] // which gives numbers again
	}
	if got, _ := Lost(group); len(got) != 1 || !got[0].GTIDs.Equal(set("d21-25")) {
		t.Errorf("of a group it is %+v", got)
	}
	got := Select(followed(), Base{Epoch: 1, End: set("d1-23"), Time: at(23)}, Target{Kind: Latest}, nil)
	if got.Refusal != nil || !got.Plan.Set.Equal(set("d1-24 d26-30")) {
		t.Errorf("restored is %s, refused %v", got.Plan.Set, got.Refusal)
	}
}

// TestWhatCannotBeReadIsRefusedOnlyWhereItIsNeeded: of each part and branch of a story.
func TestWhatCannotBeReadIsRefusedOnlyWhereItIsNeeded(t *testing.T) {
	latest, one, three := Target{}, Base{Epoch: 1, End: set("a1-2"), Time: at(2)}, Base{Epoch: 3,
		End: set("a1-5 b1-2"), Time: at(12)}
	for name, c := range map[string]struct {
		key    Key
		base   Base
		target Target
		refuse bool
	}{
		"the last part, to the latest":         {Key{3, 2}, one, latest, true},
		"the last part, to a time before":      {Key{3, 2}, one, Target{Kind: ToTime, Time: at(12)}, false},
		"the last part, to a time in it":       {Key{3, 2}, one, Target{Kind: ToTime, Time: at(13)}, true},
		"the last part, to what it may hold":   {Key{3, 2}, one, Target{Kind: ToGTIDs, GTIDs: set("b3")}, true},
		"the last part, to what is before":     {Key{3, 2}, one, Target{Kind: ToGTIDs, GTIDs: set("b2")}, false},
		"one in the middle, to the latest":     {Key{3, 1}, one, latest, true},
		"the same, from a backup that has it":  {Key{3, 1}, three, latest, false},
		"one of before, from a later backup":   {Key{1, 2}, three, latest, false},
		"the last one of an epoch before":      {Key{1, 2}, one, latest, true},
		"the same, to a time before":           {Key{1, 2}, one, Target{Kind: ToTime, Time: at(3)}, false},
		"a branch, to the latest":              {Key{3, 0}, one, latest, true},
		"a branch, and the backup alone":       {Key{3, 0}, one, Target{Kind: Immediate}, false},
		"a branch, and what the backup holds":  {Key{3, 0}, one, Target{Kind: ToGTIDs, GTIDs: set("a1-2")}, false},
		"a branch of before the backup":        {Key{1, 0}, three, latest, false},
		"the last part, and the backup alone":  {Key{3, 2}, one, Target{Kind: Immediate}, false},
		"one that the backup has, to a time":   {Key{1, 1}, three, Target{Kind: ToTime, Time: at(13)}, false},
		"the first, from a backup of its time": {Key{1, 1}, one, latest, true},
	} {
		whole := story()
		a := Archive{Unreadable: []Unreadable{{c.key, PartDamaged, "damaged"}}}
		for _, b := range whole.Branches {
			if (Key{Epoch: b.Epoch}) != c.key {
				a.Branches = append(a.Branches, b)
			}
		}
		for _, p := range whole.Parts {
			if p.Key() != c.key {
				a.Parts = append(a.Parts, p)
			}
		}
		got, want := Select(a, c.base, c.target, contents(a)), Select(whole, c.base, c.target, contents(whole))
		switch {
		case c.refuse && (got.Refusal == nil || got.Refusal.Reason != PartDamaged || len(got.Refusal.Parts) != 1 ||
			got.Refusal.Parts[0] != c.key):
			t.Errorf("%s: %s, refusal %v", name, stepsText(got.Plan), got.Refusal)
		case !c.refuse && (got.Refusal != nil || want.Refusal != nil || stepsText(got.Plan) != stepsText(want.Plan)):
			t.Errorf("%s: %s, refusal %v; and of the whole archive %s", name, stepsText(got.Plan), got.Refusal,
				stepsText(want.Plan))
		}
	}
}
