package writer

import (
	"slices"
	"time"
)

// Gap is a time without an acknowledgement; the package's documentation defines it. The zero Gap
// means that there was none.
type Gap struct {
	Start, End time.Time
	Open       bool // no acknowledgement has ended it yet
}

// Duration is exact: both ends are readings of the same monotonic clock.
func (g Gap) Duration() time.Duration { return g.End.Sub(g.Start) }

// longestGap finds the longest gap that ends after the given time. A gap that had begun before
// counts whole: the last acknowledgement before a kill is where the outage, as clients see it,
// begins. Of equally long gaps the first is given.
func longestGap(acks []time.Duration, after, now time.Duration) (start, end time.Duration, open bool) {
	if len(acks) == 0 {
		return 0, 0, false
	}
	first, _ := slices.BinarySearch(acks, after+1)
	for i := max(first, 1); i < len(acks); i++ {
		if acks[i]-acks[i-1] > end-start {
			start, end = acks[i-1], acks[i]
		}
	}
	if last := acks[len(acks)-1]; now-last > end-start {
		return last, now, true
	}
	return start, end, false
}

func (r *record) gapSince(after time.Duration) Gap {
	start, end, open := longestGap(r.acks, after, r.now())
	if start == end {
		return Gap{}
	}
	return Gap{Start: r.started.Add(start), End: r.started.Add(end), Open: open}
}

// now is the present, or when the writer was stopped: what comes after is nobody's outage.
func (r *record) now() time.Duration {
	if !r.stopped.IsZero() {
		return r.stopped.Sub(r.started)
	}
	return time.Since(r.started)
}

// GapsOver gives the gaps that are longer than d, in their order: how often writes were interrupted.
func (w *Writer) GapsOver(d time.Duration) []Gap {
	if w.record == nil {
		return nil
	}
	r := w.record
	r.mu.Lock()
	defer r.mu.Unlock()
	var gaps []Gap
	for i := 1; i < len(r.acks); i++ {
		if r.acks[i]-r.acks[i-1] > d {
			gaps = append(gaps, Gap{Start: r.started.Add(r.acks[i-1]), End: r.started.Add(r.acks[i])})
		}
	}
	if n := len(r.acks); n > 0 && r.now()-r.acks[n-1] > d {
		gaps = append(gaps, Gap{Start: r.started.Add(r.acks[n-1]), End: r.started.Add(r.now()), Open: true})
	}
	return gaps
}
