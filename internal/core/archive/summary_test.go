package archive

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// bundledHourly are bundles of ten parts each, one an hour, of which the last one is just settled.
func bundledHourly(n int64) (out []Bundle) {
	for i := range n {
		out = append(out, Bundle{Epoch: 1, First: i*10 + 1, Last: i*10 + 10,
			Written: midnight.Add(-time.Duration(n-i) * settled)})
	}
	return out
}

func TestWhichBundlesAreSummarized(t *testing.T) {
	none := func(Bundle) bool { return false }
	first := func(n ...int64) func(Bundle) bool {
		return func(b Bundle) bool { return slices.Contains(n, b.First) }
	}
	across := Bundle{Epoch: 1, First: 15, Last: 25, Written: midnight.Add(-settled)}
	for name, c := range map[string]struct {
		bundles       []Bundle
		later         time.Duration
		told, besides func(Bundle) bool
		isOver        bool
		want          string
	}{
		"none":                           {nil, 0, none, none, true, ""},
		"as many as are in one":          {bundledHourly(7), 0, none, none, false, "1-30 31-60"},
		"what is not settled is not":     {bundledHourly(7), -time.Second, none, none, true, "1-30 31-60"},
		"what is told is not":            {bundledHourly(7), 0, first(1, 11, 21, 41), none, false, "31-70"},
		"nor beside what lies by itself": {bundledHourly(7), 0, none, first(11), false, "1-40 41-70"},
		"all of an epoch that is over":   {bundledHourly(7), 0, none, none, true, "1-30 31-60 61-70"},
		"not one across another": {slices.Insert(bundledHourly(7), 2, across), 0, none, none, true,
			"1-50 51-70"},
		"by a clock that is not known none is": {bundledHourly(7), -midnight.Sub(time.Time{}), none, none, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, some := range []int{4, math.MaxInt} { // bundles that overlap are told together
				s, out := Summarizing{Now: midnight.Add(c.later), Size: 3}, [][]Bundle(nil)
				for rest := c.bundles; len(rest) > 0; rest = rest[min(some, len(rest)):] {
					out = append(out, s.Add(rest[:min(some, len(rest))], c.told, c.besides)...)
				}
				var text []string
				for _, all := range append(out, s.End(c.isOver)...) {
					text = append(text, fmt.Sprintf("%d-%d", all[0].First, all[len(all)-1].Last))
				}
				if got := strings.Join(text, " "); got != c.want {
					t.Errorf("%q, not %q, of %d at a time", got, c.want, some)
				}
			}
		})
	}
}
