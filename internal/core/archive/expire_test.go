package archive

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// month is a story of one backup a day, at noon, and four parts between two of them: a day
// is 100 seconds long, and has the transactions a1 to a4, a5 to a8, and so on.
func month(days int) Holdings {
	h := Holdings{Window: 300 * time.Second, Archive: Archive{Branches: []Branch{branch(1, "", "")}}}
	for day := range days {
		from := float64(100 * day)
		done := fmt.Sprintf("a1-%d", max(4*day, 1))
		if day == 0 {
			done = ""
		}
		h.Bases = append(h.Bases, Stored{ID: fmt.Sprintf("day%d", day), Epoch: 1, Begin: set(done), End: set(done),
			Point: at(from), Ended: at(from + 1), Written: at(from + 2)})
		for i := range 4 {
			n := 4*day + i + 1
			before := ""
			if n > 1 {
				before = fmt.Sprintf("a1-%d", n-1)
			}
			when := from + float64(20*(i+1))
			h.Archive.Parts = append(h.Archive.Parts, part(1, int64(n), before, fmt.Sprintf("a%d", n), when, when))
		}
	}
	h.Local = at(float64(100*(days-1) + 2))
	h.Store = h.Local
	return h
}

// The bases that go in most cases.
const (
	toDay4 = "[day0 day1 day2 day3 day4]"
	toDay5 = "[day0 day1 day2 day3 day4 day5]"
)

// expired is what goes of ten days after a change, and what holds the rest.
type expired struct {
	change func(*Holdings)
	bases  string
	parts  int // from the first
	anchor string
	held   core.Reason
}

func (c expired) expect(t *testing.T) {
	h := month(10)
	if c.change != nil {
		c.change(&h)
	}
	e := Expire(h)
	if c.bases == "" {
		c.bases = "[]"
	}
	gone := keysOf(e.Parts)
	if fmt.Sprint(e.Bases) != c.bases || e.Anchor != c.anchor || e.Held != c.held || len(gone) != c.parts {
		t.Errorf("%+v", e)
	}
	for i, k := range gone {
		if k != (Key{1, int64(i + 1)}) {
			t.Errorf("%v goes, and not part %d", k, i+1)
		}
	}
}

// TestExpire holds which backups are old enough to go, by the clocks that there are.
func TestExpire(t *testing.T) {
	const day = 100 * time.Second
	for name, c := range map[string]expired{
		"as it should be": {bases: toDay5, parts: 23, anchor: "day6"},
		"a backup exactly as old": {change: func(h *Holdings) { h.Window = 3 * day },
			bases: toDay5, parts: 23, anchor: "day6"},
		"one a second too young": {change: func(h *Holdings) { h.Window = 3*day + time.Second },
			bases: toDay4, parts: 19, anchor: "day5"},
		"no backup is old enough": {change: func(h *Holdings) { h.Window = 30 * day }, held: RetentionYoung},
		"the clock here runs ahead": {change: func(h *Holdings) { h.Local = h.Local.Add(50 * day) },
			bases: toDay5, parts: 23, anchor: "day6"},
		"the store's clock": {change: func(h *Holdings) { h.Store = h.Store.Add(50 * day) },
			bases: toDay5, parts: 23, anchor: "day6"},
		"a clock that is behind": {change: func(h *Holdings) { h.Local = h.Local.Add(-day) },
			bases: toDay4, parts: 19, anchor: "day5"},
		"the store's time is unknown": {change: func(h *Holdings) { h.Store = time.Time{} },
			held: RetentionTimeUnknown},
		"the minimum": {change: func(h *Holdings) { h.Minimum = 7 },
			bases: "[day0 day1 day2]", parts: 11, anchor: "day6"},
		"copied into this store a moment ago": {change: func(h *Holdings) {
			for i := range h.Bases {
				h.Bases[i].Written = h.Store
			}
		}, held: RetentionYoung},
		"an age that is not known": {change: func(h *Holdings) { h.Bases[2].Written = time.Time{} },
			bases: "[day0 day1 day3 day4 day5]", parts: 7, anchor: "day6"},
		"the oldest one's age is not known": {change: func(h *Holdings) { h.Bases[6].Written = time.Time{} },
			bases: toDay4, parts: 19, anchor: "day5"},
	} {
		t.Run(name, c.expect)
	}
}

// TestExpireKeepsWhatABackupNeeds holds which parts go with the backups, and which the rest still needs.
func TestExpireKeepsWhatABackupNeeds(t *testing.T) {
	for name, c := range map[string]expired{
		"what a backup may lack stays": {change: func(h *Holdings) { h.Bases[6].Begin = set("a1-21") },
			bases: toDay5, parts: 20, anchor: "day6"},
		"a backup that holds what was lost": {change: func(h *Holdings) {
			h.Bases[6].End = set("a1-24 b1")
			h.Archive.Branches = append(h.Archive.Branches, branch(2, "a1-40", "a1-40"))
		}, bases: toDay4, parts: 19, anchor: "day5"},
		"the primary's clock was ahead": {change: func(h *Holdings) { h.Archive.Parts[21].Last = at(5000) },
			bases: toDay4, parts: 19, anchor: "day5"},
		"one beyond a gap, by a clock that was behind": {change: func(h *Holdings) {
			h.Archive.Parts = append(h.Archive.Parts[:20], h.Archive.Parts[21:]...)
			h.Bases[6].Point, h.Bases[6].Ended = at(50), at(51)
		}, bases: toDay4, parts: 19, anchor: "day5"},
		"a branch of which nobody knows": {change: func(h *Holdings) { h.Archive.Parts[39].Epoch = 2 },
			held: RetentionBranchMissing},
		"a branch that came late": {change: func(h *Holdings) {
			late, next := branch(2, "a1-8", "a1-8"), branch(3, "a1-40", "a1-40")
			late.After, next.After = 1, 1
			h.Archive.Branches = append(h.Archive.Branches, late, next)
			h.Archive.Parts = append(h.Archive.Parts, part(2, 1, "a1-8", "b1", 1000, 1000))
		}, bases: toDay5, parts: 23, anchor: "day6"},
		"the last part of a branch": {change: func(h *Holdings) { h.Archive.Parts = h.Archive.Parts[:20] },
			bases: toDay4, parts: 19, anchor: "day5"}, // which the archive has come to
		"nothing is archived for as long as the window again": {change: func(h *Holdings) {
			h.Archive.Parts, h.Window = h.Archive.Parts[:20], 100*time.Second
		}, bases: toDay5, parts: 19, anchor: "day6"},
		"a part that the listing lacks may be of the window": {change: func(h *Holdings) {
			h.Archive.Parts = slices.Delete(h.Archive.Parts, 23, 24)
		}, bases: toDay4, parts: 19, anchor: "day5"},
		"nothing is archived": {change: func(h *Holdings) { h.Archive = Archive{} }, bases: toDay5, anchor: "day6"},
		"pieces whose end stays": {change: func(h *Holdings) {
			for i := range 3 {
				h.Archive.Parts[22+i].Piece = int64(i + 1)
			}
			h.Archive.Parts[22].GTIDs, h.Archive.Parts[23].GTIDs = set(""), set("")
			h.Archive.Parts[24].GTIDs, h.Archive.Parts[24].Pieces = set("a23-25"), 3
			h.Archive.Parts[24].Last = at(590)
		}, bases: toDay5, parts: 21, anchor: "day6"},
		"pieces of which none came any more": {change: func(h *Holdings) {
			h.Archive.Parts[22].Piece, h.Archive.Parts[22].GTIDs = 1, set("")
			h.Archive.Parts[23].GTIDs = set("a23-24")
		}, bases: toDay5, parts: 23, anchor: "day6"},
	} {
		t.Run(name, c.expect)
	}
}

func TestTheEarliestMomentIsThatOfTheOldestThatStays(t *testing.T) {
	h := month(10)
	if e := Expire(h); !e.Since.Equal(at(600)) || len(e.Kept) != 4 || e.Kept[3] != (Kept{"day6", KeepsAnchor}) {
		t.Errorf("%+v", e)
	}
	h.Minimum = 6
	if e := Expire(h); !e.Since.Equal(at(400)) || e.Kept[4].Why != KeepsMinimum {
		t.Errorf("%+v", e)
	}
}
