package archive

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var midnight = time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)

// lying are parts of an epoch, one a minute, the last of them just before midnight.
func lying(epoch, first, last, bytes int64) (out []Single) {
	for n := first; n <= last; n++ {
		out = append(out, Single{Key{epoch, n}, bytes, midnight.Add(-time.Duration(last-n+1) * time.Minute)})
	}
	return out
}

func runsText(all [][]Key) string {
	var out []string
	for _, run := range all {
		out = append(out, fmt.Sprintf("%d/%d-%d", run[0].Epoch, run[0].Sequence, run[len(run)-1].Sequence))
	}
	return strings.Join(out, " ")
}

// merges is what of some parts is bundled, of which Merging is told some at a time.
func merges(singles []Single, bundles []Bundle, now time.Time, some func() int) (out [][]Key) {
	slices.SortFunc(singles, func(a, b Single) int { return a.Key.compare(b.Key) })
	for len(singles) > 0 {
		m, epoch := Merging{Now: now}, singles[0].Key.Epoch
		for len(singles) > 0 && singles[0].Key.Epoch == epoch {
			n := 0
			for n < min(len(singles), some()) && singles[n].Key.Epoch == epoch {
				n++
			}
			n = max(n, 1)
			out = append(out, m.Add(singles[:n], CoverOf(bundles))...)
			singles = singles[n:]
		}
		out = append(out, m.End()...)
	}
	return out
}

func TestWhichPartsAreMerged(t *testing.T) {
	without := func(all []Single, n int64) []Single {
		return slices.DeleteFunc(all, func(s Single) bool { return s.Key.Sequence == n })
	}
	large := func(all []Single, n int64) []Single {
		all[n-1].Stored = smallPart + 1
		return all
	}
	const late = 2 * time.Hour
	old := Bundle{Epoch: 1, First: 21, Last: 40, Written: midnight.Add(-late)}
	for name, c := range map[string]struct {
		singles []Single
		bundles []Bundle
		later   time.Duration
		want    string
	}{
		"none":                                  {nil, nil, 0, ""},
		"an hour's parts are not, nor the last": {lying(1, 1, 160, 100), nil, 0, "1/1-100"},
		"too few are not":                       {lying(1, 1, 75, 100), nil, 0, ""},
		"just enough":                           {lying(1, 1, 75, 100), nil, time.Minute, "1/1-16"},
		"the newest stays however old it is":    {lying(1, 1, 30, 100), nil, 1000 * late, "1/1-29"},
		"each epoch by itself": {append(lying(2, 1, 30, 100), lying(1, 1, 30, 100)...), nil, late,
			"1/1-29 2/1-29"},
		"as many as fit by their number": {lying(1, 1, 2100, 1), nil, late * 20,
			"1/1-1024 1/1025-2048 1/2049-2099"},
		"as many as fit by their size":         {lying(1, 1, 60, 400<<10), nil, late, "1/1-20 1/21-40 1/41-59"},
		"large ones are not":                   {large(lying(1, 1, 60, 100), 30), nil, late, "1/1-29 1/31-59"},
		"not over a part that is not there":    {without(lying(1, 1, 60, 100), 20), nil, late, "1/1-19 1/21-59"},
		"not what a bundle holds":              {lying(1, 1, 60, 100), []Bundle{old}, late, "1/1-20 1/41-59"},
		"another epoch's bundle holds nothing": {lying(2, 1, 60, 100), []Bundle{old}, late, "2/1-59"},
		"of times that nobody knows none is":   {[]Single{{Key: Key{1, 1}}, {Key: Key{1, 2}}}, nil, late, ""},
		"by a clock that is not known none is": {lying(1, 1, 60, 100), nil, -midnight.Sub(time.Time{}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, some := range []int{1, 7, math.MaxInt} {
				got := runsText(merges(c.singles, c.bundles, midnight.Add(c.later), func() int { return some }))
				if got != c.want {
					t.Errorf("%q, not %q, of %d at a time", got, c.want, some)
				}
			}
		})
	}
}

func TestABundleTakesThePlaceOfItsPartsLater(t *testing.T) {
	young, unknown := Bundle{Epoch: 1, First: 1, Last: 20, Written: midnight}, Bundle{Epoch: 1, First: 41, Last: 60}
	old := Bundle{Epoch: 1, First: 21, Last: 40, Written: midnight.Add(-settled)}
	if got := Settled([]Bundle{young, old, unknown}, midnight); !slices.Equal(got, []Bundle{old}) {
		t.Errorf("%+v", got)
	}
}

// TestWhateverLiesThereIsMergedWithinBounds: parts of any sizes and times, some of which lack, and
// bundles that hold some of them.
func TestWhateverLiesThereIsMergedWithinBounds(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var singles []Single
		for epoch := range int64(3) {
			for _, s := range lying(epoch, 1, 10+r.Int64N(1500), 1+r.Int64N(20<<10)) {
				if r.IntN(50) > 0 {
					s.Stored <<= r.IntN(7)
					s.Written = s.Written.Add(-time.Duration(r.IntN(7200)) * time.Second)
					singles = append(singles, s)
				}
			}
		}
		bundles := []Bundle{{Epoch: 1, First: 1 + r.Int64N(500), Last: 500 + r.Int64N(300), Written: midnight}}
		r.Shuffle(len(singles), func(i, k int) { singles[i], singles[k] = singles[k], singles[i] })
		whole := merges(singles, bundles, midnight, func() int { return math.MaxInt })
		checkMerging(t, singles, bundles, whole)
		pieces := merges(singles, bundles, midnight, func() int { return r.IntN(700) })
		if !reflect.DeepEqual(pieces, whole) {
			t.Errorf("in pieces %s are merged, and together %s", runsText(pieces), runsText(whole))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func checkMerging(t *testing.T, singles []Single, bundles []Bundle, planned [][]Key) {
	t.Helper()
	known, last := map[Key]Single{}, map[int64]int64{}
	for _, s := range singles {
		known[s.Key] = s
		last[s.Key.Epoch] = max(last[s.Key.Epoch], s.Key.Sequence)
	}
	seen := map[Key]bool{}
	for _, run := range planned {
		var bytes int64
		for i, k := range run {
			s, is := known[k]
			bytes += s.Stored
			isNext := i == 0 || k == Key{run[i-1].Epoch, run[i-1].Sequence + 1}
			if !is || seen[k] || !isNext || bundles[0].Holds(k) || s.Stored > smallPart ||
				s.Written.After(midnight.Add(-settled)) || k.Sequence == last[k.Epoch] {
				t.Errorf("%+v is in a bundle: %+v", k, s)
			}
			seen[k] = true
		}
		if len(run) < bundleLeast || len(run) > BundleParts || bytes > BundleBytes {
			t.Errorf("a bundle of %d parts and %d bytes", len(run), bytes)
		}
	}
}

func TestWhatIsLeftAroundADamagedPartIsMerged(t *testing.T) {
	var keys []Key
	for n := int64(1); n <= 60; n++ {
		keys = append(keys, Key{1, n})
	}
	for want, bad := range map[string][]int64{"1/1-60": nil, "1/1-19 1/21-60": {20}, "1/17-59": {16, 60},
		"": {15, 30, 45}, "1/2-60": {1}} {
		without := map[Key]bool{}
		for _, n := range bad {
			without[Key{1, n}] = true
		}
		if got := runsText(Around(keys, without)); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestBundlesOverlapThatHaveAPartInCommon(t *testing.T) {
	b := func(epoch, first, last int64) Bundle { return Bundle{Epoch: epoch, First: first, Last: last} }
	wide, inner, beyond, alone := b(1, 1, 100), b(1, 5, 6), b(1, 90, 120), b(1, 121, 130)
	got := Overlapping([]Bundle{alone, beyond, b(2, 5, 6), inner, wide})
	if len(got) != 3 || !got[wide] || !got[inner] || !got[beyond] {
		t.Errorf("%v", got)
	}
}
