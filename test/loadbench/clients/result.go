package clients

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Result is what came of the transactions.
type Result struct {
	// Transactions were acknowledged within the window, whenever they began.
	Transactions int
	Window       time.Duration
	// P50 and P99 are of how long those took that began within the window and were
	// acknowledged, also after its end.
	P50, P99 time.Duration
	// Errors are the transactions that failed after the window had begun, and Before those
	// that failed before. None of them is among the others.
	Errors, Before int
	// Kinds are all that failed, by why.
	Kinds map[string]int
	// LastAck is when the last of all transactions was acknowledged.
	LastAck time.Time
}

// TPS is transactions a second.
func (r *Result) TPS() float64 { return float64(r.Transactions) / r.Window.Seconds() }

// judge counts. A window without a transaction that was acknowledged is an error.
func judge(done []transaction, begin, end time.Time) (*Result, error) {
	r := &Result{Window: end.Sub(begin), Kinds: map[string]int{}}
	var took []time.Duration
	for _, t := range done {
		if t.err != nil {
			r.fail(t, begin)
			continue
		}
		if t.ended.After(r.LastAck) {
			r.LastAck = t.ended
		}
		if !t.ended.Before(begin) && t.ended.Before(end) {
			r.Transactions++
		}
		if !t.begun.Before(begin) {
			took = append(took, t.ended.Sub(t.begun))
		}
	}
	if r.Transactions == 0 || len(took) == 0 {
		return nil, fmt.Errorf("no transaction that began in %s was acknowledged; errors: %v", r.Window, r.Kinds)
	}
	slices.Sort(took)
	r.P50, r.P99 = ranked(took, 0.5), ranked(took, 0.99)
	return r, nil
}

func (r *Result) fail(t transaction, begin time.Time) {
	r.Kinds[kind(t.err)]++
	if t.ended.Before(begin) {
		r.Before++
	} else {
		r.Errors++
	}
}

// ranked is the least of sorted times that a share of them does not exceed.
func ranked(sorted []time.Duration, share float64) time.Duration {
	return sorted[int(math.Ceil(share*float64(len(sorted))))-1]
}

// kind of an error: the server's number where it has answered.
func kind(err error) string {
	var answer *mysql.MySQLError
	if errors.As(err, &answer) {
		return fmt.Sprintf("error %d of the server", answer.Number)
	}
	return err.Error()
}
