package archive

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkSelect: a month of parts, one a minute, and a failover a day.
func BenchmarkSelect(b *testing.B) {
	var a Archive
	before := set("")
	n := 0
	for day := range int64(30) {
		a.Branches = append(a.Branches, Branch{Epoch: day + 1, Start: before, Held: before})
		for minute := range int64(1440) {
			ids := set(fmt.Sprintf("%c%d-%d", 'a'+day%6, n*100+1, n*100+100))
			at := time.Unix(int64(n)*60, 0)
			a.Parts = append(a.Parts, Part{Epoch: day + 1, Sequence: minute + 1, Before: before, GTIDs: ids,
				Transactions: 100, First: at, Last: at})
			before = before.Union(ids)
			n++
		}
	}
	for b.Loop() {
		if got := Select(a, Base{Epoch: 1}, Target{}, nil); got.Refusal != nil || len(got.Plan.Steps) != n {
			b.Fatalf("%v, %d steps", got.Refusal, len(got.Plan.Steps))
		}
	}
}
