package throughput

import (
	"fmt"
	"strings"

	"cnmsql.co/test/benchfile"
)

// place of the section.
var place = benchfile.Place{
	Begins: "<!-- throughput, made by make generate from benchmarks.json -->",
	Ends:   "<!-- end of what is made of throughput -->",
}

// The goals of Quorum beside Pair, at every count of connections.
const (
	leastTPS = 0.9
	mostP99  = 1.5
)

// WritePage writes the made part of the page again. With nothing measured it says so.
func (l *List) WritePage(file string) error { return place.Write(file, l.Render()) }

// Render is the text of the section: each run, and its table.
func (l *List) Render() string {
	if len(l.Runs) == 0 {
		return "\nNothing is measured yet.\n\n"
	}
	var t strings.Builder
	for _, run := range l.Runs {
		fmt.Fprintf(&t, "\n`%s`, begun %s, at %s. %s; %s. %d rows in the table of oltp_read_write; "+
			"%g s of warm-up, %g s that count.\n\n",
			run.Command, run.Begun, run.Commit, run.Machine, run.Server, run.TableRows, run.Warm, run.Window)
		t.WriteString("| workload | connections | durability | transactions/s | p50 | p99 | replica lag | applied/s " +
			"| errors | not awaited | load | tps by the pair's | p99 by the pair's | goal " +
			"| tps, applied/s, p99 by the trio's |\n" +
			"|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
		for _, r := range l.Rows {
			if r.Run == run.Begun {
				t.WriteString(l.line(r, run))
			}
		}
	}
	return t.String() + "\n"
}

func (l *List) line(r Row, run Run) string {
	lag, applied, tps, p99, goal, three := "–", "–", "–", "–", "–", "–"
	if r.Lag != nil {
		lag, applied = fmt.Sprintf("%.2f s", *r.Lag), fmt.Sprintf("%.1f", run.applied(r))
	}
	if trio, found := l.beside(r, Trio); found && r.Durability != Trio {
		three = fmt.Sprintf("%.3f, %.3f, %.3f", r.TPS/trio.TPS, run.applied(r)/run.applied(trio), r.P99/trio.P99)
	}
	if pair, found := l.beside(r, Pair); found && r.Durability != Pair {
		tps, p99 = fmt.Sprintf("%.3f", r.TPS/pair.TPS), fmt.Sprintf("%.3f", r.P99/pair.P99)
		if r.Durability == Quorum {
			goal = goalOf(r, pair)
		}
	}
	return fmt.Sprintf("| %s | %d | %s | %.1f | %.2f ms | %.2f ms | %s | %s | %d | %d | %.1f | %s | %s | %s | %s |\n",
		r.Workload, r.Connections, r.Durability, r.TPS, r.P50, r.P99, lag, applied, r.Errors, r.NotAwaited,
		r.Load, tps, p99, goal, three)
}

// goalOf tells of both goals whether they are met.
func goalOf(r, pair Row) string {
	return fmt.Sprintf("tps ≥ %g: %s; p99 ≤ %g: %s",
		leastTPS, met(r.TPS >= leastTPS*pair.TPS), mostP99, met(r.P99 <= mostP99*pair.P99))
}

func met(is bool) string {
	if is {
		return "met"
	}
	return "**not met**"
}
