package main

import (
	"math"
	"testing"

	"github.com/anishathalye/porcupine"
)

func op(client int, a access, value int, call, end int64) porcupine.Operation {
	return porcupine.Operation{ClientId: client, Input: a, Call: call, Output: value, Return: end}
}

// A second primary that acknowledges makes a read miss what was acknowledged before it.
func TestTheCheckFindsAReadFromThePast(t *testing.T) {
	history := []porcupine.Operation{op(1, access{1, 7}, 0, 1, 2), op(2, access{1, 8}, 0, 3, 4), op(1, access{1, 0}, 7,
		5, 6), op(1, access{2, 0}, 0, 7, 8)}
	if got := (&registers{history: history}).check(); got != porcupine.Illegal {
		t.Errorf("a stale read is %s", got)
	}
	history[2].Output = 8
	if got := (&registers{history: history}).check(); got != porcupine.Ok {
		t.Errorf("a fresh read is %s", got)
	}
}

func TestAWriteOfUnknownFateMayHaveHappenedOrNot(t *testing.T) {
	for _, seen := range []int{0, 7} {
		history := []porcupine.Operation{op(1, access{1, 7}, 0, 1, math.MaxInt64), op(2, access{1, 0}, seen, 3, 4)}
		if got := (&registers{history: history}).check(); got != porcupine.Ok {
			t.Errorf("reading %d after it is %s", seen, got)
		}
	}
}

func TestLogsThatDifferInTheirOrderAreFound(t *testing.T) {
	for _, tc := range []struct {
		name string
		b    []string
		want int
	}{
		{"equal", []string{"u:1", "u:2", "v:1"}, 0}, {"begins later", []string{"u:2", "v:1"}, 0},
		{"another order", []string{"u:1", "v:1", "u:2"}, 1}, {"one twice", []string{"u:1", "u:2", "u:2", "v:1"}, 1},
	} {
		s := &soak{}
		s.judgeLogs("a", "b", []string{"u:1", "u:2", "v:1"}, tc.b)
		if len(s.violations) != tc.want {
			t.Errorf("%s: %v", tc.name, s.violations)
		}
	}
}
