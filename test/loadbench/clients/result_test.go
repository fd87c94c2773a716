package clients

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

var zero = time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)

// took is a transaction from one moment to another, in milliseconds.
func took(from, to int, err error) transaction {
	return transaction{at(from), at(to), err}
}

func at(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }

func TestWhatEndsInTheWindowCountsAndWhatBeginsInItIsTimed(t *testing.T) {
	r, err := judge([]transaction{
		took(900, 999, nil),   // in the warm-up
		took(990, 1010, nil),  // counts, but began too early to be timed
		took(1000, 1040, nil), // both
		took(1900, 1999, nil), // both
		took(1999, 2500, nil), // ended too late to count; as slow as it was
	}, at(1000), at(2000))
	if err != nil {
		t.Fatal(err)
	}
	if r.Transactions != 3 || r.TPS() != 3 || r.P50 != 99*time.Millisecond || r.P99 != 501*time.Millisecond ||
		!r.LastAck.Equal(at(2500)) {
		t.Errorf("%+v", r)
	}
}

func TestFailuresAreCountedByWhyAndAreNoTransactions(t *testing.T) {
	deadlock := &mysql.MySQLError{Number: 1213, Message: "Deadlock found"}
	r, err := judge([]transaction{
		took(900, 950, deadlock), took(950, 1010, deadlock), took(1010, 1020, nil),
		took(1020, 3000, errors.New("connecting again: refused")),
	}, at(1000), at(3000))
	if err != nil {
		t.Fatal(err)
	}
	if r.Transactions != 1 || r.TPS() != 0.5 || r.Errors != 2 || r.Before != 1 || r.P99 != 10*time.Millisecond ||
		!r.LastAck.Equal(at(1020)) {
		t.Errorf("%+v", r)
	}
	if len(r.Kinds) != 2 || r.Kinds["error 1213 of the server"] != 2 || r.Kinds["connecting again: refused"] != 1 {
		t.Errorf("%v", r.Kinds)
	}
}

func TestAWindowWithoutTransactionsIsAnErrorThatSaysWhy(t *testing.T) {
	for _, done := range [][]transaction{
		nil,
		{took(1000, 1500, errors.New("no route"))},
		{took(500, 1500, nil)},
		{took(1500, 2500, nil)},
	} {
		r, err := judge(done, at(1000), at(2000))
		if err == nil {
			t.Errorf("%v gives %+v", done, r)
		} else if len(done) > 0 && done[0].err != nil && !strings.Contains(err.Error(), "no route") {
			t.Error(err)
		}
	}
}

func TestPercentilesAreOfTheRankedTimes(t *testing.T) {
	var sorted []time.Duration
	for i := range 200 {
		sorted = append(sorted, time.Duration(i+1))
	}
	for share, want := range map[float64]time.Duration{0.5: 100, 0.99: 198, 1: 200} {
		if got := ranked(sorted, share); got != want {
			t.Errorf("%g of 1 to 200 is %d", share, got)
		}
	}
	if got := ranked([]time.Duration{7}, 0.5); got != 7 {
		t.Errorf("of a single one it is %d", got)
	}
}
