package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"cnmsql.co/test/writer"
)

type result struct {
	Report       writer.Report
	Verification *writer.Verification // nil: could not be made
	VerifyError  string
}

func (r result) exitCode() int {
	switch {
	case r.Verification == nil:
		return exitCannotTell
	case !r.Verification.OK():
		return exitRowsWrong
	}
	return exitGood
}

const clock = "15:04:05.000"

func progress(s writer.Snapshot, fresh int) string {
	return fmt.Sprintf(
		"%s  acknowledged %d (+%d)  unknown %d  refused %d  unconnected %d  last ack %s ago  longest gap %s",
		s.At.Format(clock), s.Acknowledged, fresh, s.Unknown, s.Refused, s.Unconnected, millis(s.SinceLastAck()),
		gapText(s.LongestGap))
}

func (r result) print(out io.Writer, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r.summary())
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	r.printReport(table)
	r.printVerification(table)
	return table.Flush()
}

func (r result) printReport(out io.Writer) {
	s := r.Report
	took := s.At.Sub(s.Started)
	fmt.Fprintf(out, "run\t%s, %.1f s\n", s.Run, took.Seconds())
	fmt.Fprintf(out, "acknowledged\t%d (%.0f/s)\n", s.Acknowledged, float64(s.Acknowledged)/took.Seconds())
	fmt.Fprintf(out, "unknown\t%d\n", s.Unknown)
	fmt.Fprintf(out, "refused\t%d\n", s.Refused)
	fmt.Fprintf(out, "unconnected\t%d\n", s.Unconnected)
	fmt.Fprintf(out, "longest gap\t%s\n", gapText(s.LongestGap))
	fmt.Fprintf(out, "latency\tp50 %s, p99 %s, max %s\n", millis(s.Latency.P50), millis(s.Latency.P99),
		millis(s.Latency.Max))
	for _, e := range s.Errors {
		fmt.Fprintf(out, "error\t%s %d times, %s to %s: %s\n", e.What, e.Count, e.First.Format(clock),
			e.Last.Format(clock), e.Text)
	}
}

func (r result) printVerification(out io.Writer) {
	v := r.Verification
	if v == nil {
		fmt.Fprintf(out, "NOT CHECKED\t%s\n", r.VerifyError)
		return
	}
	fmt.Fprintf(out, "rows found\t%d (of the unknown ones %d are there, %d not)\n", v.Rows,
		v.UnknownPresent, v.UnknownAbsent)
	printRows(out, "LOST", "acknowledged, but not in the table", v.Missing)
	printRows(out, "extra", "in the table, but refused or never tried", v.Extra)
	printRows(out, "out of order", "older by the server's clock than the row before", v.OutOfOrder)
}

func printRows(out io.Writer, name, meaning string, rows []writer.Row) {
	fmt.Fprintf(out, "%s\t%d", name, len(rows))
	if len(rows) > 0 {
		first, last := rows[0], rows[len(rows)-1]
		fmt.Fprintf(out, " %s: connection %d row %d at %s to connection %d row %d at %s", meaning,
			first.Connection, first.Seq, first.At.Format(clock), last.Connection, last.Seq, last.At.Format(clock))
	}
	fmt.Fprintln(out)
}

func gapText(g writer.Gap) string {
	if g.Duration() == 0 {
		return "none"
	}
	text := fmt.Sprintf("%s (%s to %s", millis(g.Duration()), g.Start.Format(clock), g.End.Format(clock))
	if g.Open {
		return text + ", not ended)"
	}
	return text + ")"
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }
