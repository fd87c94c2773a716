package core

import "testing"

func TestMySQLClonesWithinASeries(t *testing.T) {
	for _, c := range []struct {
		donor, recipient string
		can              bool
	}{
		{"8.4.9", "8.4.9", true}, {"8.4.8", "8.4.9", true}, {"8.4.9", "8.4.8", true},
		{"9.7.4-2", "9.7.4-1", true}, {"9.7.0", "9.7.4", true},
		{"8.0.45-1", "9.7.4-2", false}, {"9.7.4-2", "8.0.45-1", false}, // as real servers say
		{"8.4.9", "9.7.4", false}, {"8.0.45", "8.4.9", false}, {"9.6.0", "9.7.0", false},
		{"8.0.37", "8.0.45", true}, {"8.0.45", "8.0.37", true},
		{"8.0.36", "8.0.45", false}, {"8.0.22-13", "8.0.23-14", false}, {"8.0.22-13", "8.0.22-14", true},
		{"", "9.7.4", true}, {"9.7.4", "", true}, {"", "", true}, {"latest", "9.7.4", true},
	} {
		if got := CanClone(c.donor, c.recipient); got != c.can {
			t.Errorf("from %q to %q: %t", c.donor, c.recipient, got)
		}
	}
}

func TestSeriesComeInOrderAndTheUnknownOneLast(t *testing.T) {
	order := []string{"8.0.22", "8.0.36", "8.0.37", "8.4.0", "9.6.0", "9.7.4", "26.7.0", ""}
	for i, a := range order {
		for j, b := range order {
			if got := CompareSeries(a, b); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
	for _, same := range [][2]string{{"8.0.37", "8.0.45"}, {"8.4.1", "8.4.9-2"}, {"9.7.4", "9.7.5"}, {"", "latest"}} {
		if got := CompareSeries(same[0], same[1]); got != 0 {
			t.Errorf("%q and %q: %d", same[0], same[1], got)
		}
	}
}
