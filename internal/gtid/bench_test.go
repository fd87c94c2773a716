package gtid

import (
	"fmt"
	"strings"
	"testing"
)

// benchIntervals is far beyond what a server gathers in practice; at this size
// anything but linear would be seen.
const benchIntervals = 100_000

// gappy returns the text of a set of n intervals, of one source or of many.
func gappy(n, sources, start int) string {
	var text strings.Builder
	for source := range sources {
		fmt.Fprintf(&text, "%08x-71ca-11e1-9e33-c80aa9429562", source)
		for i := range n / sources {
			fmt.Fprintf(&text, ":%d-%d", start+i*10, start+i*10+4)
		}
		text.WriteString(",\n")
	}
	return text.String()
}

func forShapes(b *testing.B, run func(b *testing.B, text, other string)) {
	for name, sources := range map[string]int{"OneSource": 1, "ManySources": benchIntervals} {
		text, other := gappy(benchIntervals, sources, 1), gappy(benchIntervals, sources, 4)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			run(b, text, other)
		})
	}
}

func BenchmarkParse(b *testing.B) {
	forShapes(b, func(b *testing.B, text, _ string) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			MustParse(text)
		}
	})
}

func BenchmarkString(b *testing.B) {
	forShapes(b, func(b *testing.B, text, _ string) {
		s := MustParse(text)
		for b.Loop() {
			_ = s.String()
		}
	})
}

func benchmarkPair(b *testing.B, run func(s, other Set)) {
	forShapes(b, func(b *testing.B, text, other string) {
		s, o := MustParse(text), MustParse(other)
		for b.Loop() {
			run(s, o)
		}
	})
}

func BenchmarkUnion(b *testing.B) {
	benchmarkPair(b, func(s, other Set) { s.Union(other) })
}

func BenchmarkSubtract(b *testing.B) {
	benchmarkPair(b, func(s, other Set) { s.Subtract(other) })
}

func BenchmarkIntersect(b *testing.B) {
	benchmarkPair(b, func(s, other Set) { s.Intersect(other) })
}

func BenchmarkContainsItself(b *testing.B) {
	forShapes(b, func(b *testing.B, text, _ string) {
		s, same := MustParse(text), MustParse(text)
		for b.Loop() {
			if !s.Contains(same) {
				b.Fatal("does not contain itself")
			}
		}
	})
}
