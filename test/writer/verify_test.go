package writer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

type tableRow struct {
	connection  int
	seq, micros int64
}

// compare gives the verification of a record with the given outcomes against the given rows.
func compare(attempts [][]Outcome, rows []tableRow) Verification {
	r := newRecord(len(attempts))
	for connection, outcomes := range attempts {
		for _, o := range outcomes {
			r.attempts[connection] = append(r.attempts[connection], attempt{outcome: o})
		}
	}
	c := newComparison(r)
	for _, row := range rows {
		c.row(row.connection, row.seq, row.micros)
	}
	return c.end()
}

func TestVerification(t *testing.T) {
	const a, u, r = Acknowledged, Unknown, Refused
	row := func(connection int, seq int64, o Outcome) Row {
		return Row{Connection: connection, Seq: seq, Outcome: o}
	}
	for name, tc := range map[string]struct {
		attempts [][]Outcome
		rows     []tableRow
		want     Verification
	}{
		"all there": {[][]Outcome{{a, a}, {a}}, []tableRow{{0, 1, 10}, {0, 2, 10}, {1, 1, 5}}, Verification{Rows: 3}},
		"first, middle and last lost": {
			[][]Outcome{{a, a, a, a, a}, {a}}, []tableRow{{0, 2, 1}, {0, 4, 2}},
			Verification{Rows: 2, Missing: []Row{row(0, 1, a), row(0, 3, a), row(0, 5, a), row(1, 1, a)}},
		},
		"unknown may be either": {
			[][]Outcome{{u, u, a}}, []tableRow{{0, 2, 1}, {0, 3, 2}},
			Verification{Rows: 2, UnknownPresent: 1, UnknownAbsent: 1},
		},
		"refused must not be there": {
			[][]Outcome{{r, r}}, []tableRow{{0, 2, 1}}, Verification{Rows: 1, Extra: []Row{row(0, 2, r)}},
		},
		"rows that nobody tried": {
			[][]Outcome{{a}}, []tableRow{{0, 1, 1}, {0, 2, 1}, {7, 1, 1}},
			Verification{Rows: 3, Extra: []Row{row(0, 2, 0), row(7, 1, 0)}},
		},
		"time went back": {
			[][]Outcome{{a, a, a, a}}, []tableRow{{0, 1, 5}, {0, 2, 9}, {0, 3, 8}, {0, 4, 9}},
			Verification{Rows: 4, OutOfOrder: []Row{row(0, 3, a)}},
		},
		"each connection has its own order": {
			[][]Outcome{{a}, {a}}, []tableRow{{0, 1, 9}, {1, 1, 5}}, Verification{Rows: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := compare(tc.attempts, tc.rows)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreTypes(time.Time{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got.OK() != (len(tc.want.Missing)+len(tc.want.Extra) == 0) {
				t.Errorf("OK is %t", got.OK())
			}
		})
	}
}
