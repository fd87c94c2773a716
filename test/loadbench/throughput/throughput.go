// Package throughput is what was measured of transactions a second, as docs/benchmarks.json
// keeps it and as the section "Throughput" of docs/benchmarks.md tells it. test/loadbench
// measures it, and test/bench writes the section again. It must not know how it was measured.
package throughput

import (
	"cmp"
	"slices"

	"cnmsql.co/test/benchfile"
)

// List is the parts of docs/benchmarks.json that tell of throughput.
type List struct {
	Runs []Run `json:"throughputRuns,omitempty"`
	Rows []Row `json:"throughput,omitempty"`
}

// Run is on what, when and by which command some rows were measured: figures are held
// against each other only within one.
type Run struct {
	// Begun is when, in RFC 3339, and what rows name it by.
	Begun   string `json:"begun"`
	Command string `json:"command"`
	Commit  string `json:"commit"`
	Machine string `json:"machine"`
	Server  string `json:"server"`
	// TableRows is how many rows oltp_read_write works on.
	TableRows int `json:"tableRows"`
	// Warm and Window in seconds.
	Warm   float64 `json:"warm"`
	Window float64 `json:"window"`
}

// Row is what was measured of one workload with so many connections.
type Row struct {
	Workload    string `json:"workload"`
	Durability  string `json:"durability"`
	Connections int    `json:"connections"`
	// TPS is transactions a second.
	TPS float64 `json:"tps"`
	// P50 and P99 of whole transactions, in milliseconds.
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	// Lag is how many seconds after the last acknowledgement the last replica had executed
	// everything; nil where there is no replica.
	Lag          *float64 `json:"lag,omitempty"`
	Transactions int      `json:"transactions"`
	// Errors are transactions that failed; they are not among the others.
	Errors int `json:"errors"`
	// NotAwaited are commits that did not wait for the replica that they should have.
	NotAwaited int64 `json:"notAwaited,omitempty"`
	// Load average of a minute when it ended.
	Load float64 `json:"load"`
	Run  string  `json:"run"`
}

// applied is how many transactions a second all servers have executed in the end: what a primary
// commits faster than its replicas apply, it borrows.
func (r Run) applied(row Row) float64 {
	took := r.Warm + r.Window
	if row.Lag == nil || took == 0 {
		return row.TPS
	}
	return row.TPS * took / (took + *row.Lag)
}

// Durabilities in the order of the table: Bare is one mysqld, Pair is two with
// semi-synchronous replication between them, Trio is a Pair with one replica more, of which
// either acknowledges; all without the operator.
var Durabilities = []string{Bare, Pair, Trio, "async", "semi-sync", Quorum, "group"}

// Durabilities that something depends on.
const (
	Bare   = "bare"
	Pair   = "pair"
	Trio   = "trio"
	Quorum = "quorum"
)

// Open reads what a file has.
func Open(file string) (*List, error) {
	l := &List{}
	return l, benchfile.Load(file, l)
}

// Save puts it into the file, in the place of what that has.
func (l *List) Save(file string) error {
	return benchfile.Save(file, benchfile.Part{Name: "throughputRuns", Value: l.Runs},
		benchfile.Part{Name: "throughput", Value: l.Rows})
}

// Add adds a row of a run, in the place of what was measured of the same before. Runs of
// which no row is left are forgotten.
func (l *List) Add(run Run, row Row) {
	row.Run = run.Begun
	l.Rows = slices.DeleteFunc(l.Rows, func(r Row) bool {
		return r.isOf(row.Workload, row.Durability, row.Connections)
	})
	l.Rows = append(l.Rows, row)
	slices.SortFunc(l.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Connections, b.Connections),
			cmp.Compare(slices.Index(Durabilities, a.Durability), slices.Index(Durabilities, b.Durability)))
	})
	if !slices.ContainsFunc(l.Runs, func(r Run) bool { return r.Begun == run.Begun }) {
		l.Runs = append(l.Runs, run)
	}
	l.Runs = slices.DeleteFunc(l.Runs, func(run Run) bool {
		return !slices.ContainsFunc(l.Rows, func(r Row) bool { return r.Run == run.Begun })
	})
}

func (r *Row) isOf(workload, durability string, connections int) bool {
	return r.Workload == workload && r.Durability == durability && r.Connections == connections
}

// beside is what the same run has measured under another durability in the place of a row.
func (l *List) beside(r Row, durability string) (Row, bool) {
	at := slices.IndexFunc(l.Rows, func(p Row) bool {
		return p.Run == r.Run && p.isOf(r.Workload, durability, r.Connections)
	})
	if at < 0 || l.Rows[at].TPS <= 0 || l.Rows[at].P99 <= 0 {
		return Row{}, false
	}
	return l.Rows[at], true
}
