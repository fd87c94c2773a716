package writer

import (
	"slices"
	"testing"
	"time"
)

func ms(values ...int) []time.Duration {
	var out []time.Duration
	for _, v := range values {
		out = append(out, time.Duration(v)*time.Millisecond)
	}
	return out
}

func TestLongestGap(t *testing.T) {
	for name, tc := range map[string]struct {
		acks       []time.Duration
		after, now int
		start, end int
		open       bool
	}{
		"nothing was ever acknowledged":               {ms(), 0, 900, 0, 0, false},
		"time before the first is no gap":             {ms(500, 510), 0, 511, 500, 510, false},
		"between two acknowledgements":                {ms(0, 10, 60, 70), 0, 71, 10, 60, false},
		"the one that has not ended counts":           {ms(0, 10, 60), 0, 200, 60, 200, true},
		"one acknowledgement and silence":             {ms(5), 0, 25, 5, 25, true},
		"of equal ones the first":                     {ms(0, 10, 20), 0, 25, 0, 10, false},
		"a gap that ended before the window is out":   {ms(0, 100, 110, 125), 100, 126, 110, 125, false},
		"a gap that began before the window is whole": {ms(0, 100, 110), 50, 111, 0, 100, false},
		"window after all acknowledgements":           {ms(0, 10), 50, 60, 10, 60, true},
		"acknowledged after the stop":                 {ms(0, 10, 30), 0, 20, 10, 30, false},
	} {
		t.Run(name, func(t *testing.T) {
			at := func(v int) time.Duration { return time.Duration(v) * time.Millisecond }
			start, end, open := longestGap(tc.acks, at(tc.after), at(tc.now))
			if start != at(tc.start) || end != at(tc.end) || open != tc.open {
				t.Errorf("got %s to %s, open %t; want %s to %s, open %t", start, end, open,
					at(tc.start), at(tc.end), tc.open)
			}
		})
	}
}

func TestQuantilesAreNearestRank(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	if quantile(hundred, 0.5) != 50 || quantile(hundred, 0.99) != 99 || quantile(hundred, 1) != 100 ||
		quantile(nil, 0.5) != 0 {
		t.Errorf("got %d %d %d", quantile(hundred, 0.5), quantile(hundred, 0.99), quantile(hundred, 1))
	}
}

func TestGapsOverAreAllThatAreLonger(t *testing.T) {
	w := New(Config{})
	if w.GapsOver(0) != nil {
		t.Error("a writer that was not started has gaps")
	}
	w.record = newRecord(1)
	w.record.acks = ms(0, 10, 60, 70, 200)
	w.record.stopped = w.record.started.Add(500 * time.Millisecond)
	var got []time.Duration
	for _, g := range w.GapsOver(50 * time.Millisecond) {
		got = append(got, g.Duration())
	}
	if want := ms(130, 300); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: longer than the bound, the one at the end included", got, want)
	}
}
