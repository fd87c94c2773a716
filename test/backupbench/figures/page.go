package figures

import (
	"fmt"
	"strings"

	"cnmsql.co/test/benchfile"
)

// place of the section.
var place = benchfile.Place{
	Begins: "<!-- backups, made by make generate from benchmarks.json -->",
	Ends:   "<!-- end of what is made of backups -->",
}

// WritePage writes the made part of the page again; with nothing measured, it does nothing.
func (b *Backups) WritePage(file string) error {
	if b.Run == nil {
		return nil
	}
	return place.Write(file, b.render())
}

func (b *Backups) render() string {
	var t strings.Builder
	r := b.Run
	fmt.Fprintf(&t, "\n`%s`, %s, at %s. %s; %s. %s. Load average when a measurement began: %.1f to %.1f.\n\n",
		r.Command, r.Date, r.Commit, r.Machine, r.Server, r.Data, r.Load[0], r.Load[1])
	t.WriteString("| what | data | stored | took | rate | peak memory | written to disk | CPU | " +
		"its time by that of |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range b.Figures {
		t.WriteString(f.line())
	}
	fmt.Fprintf(&t, "\nA mysqld was started on what was restored from each store: `CHECKSUM TABLE` of all %d tables "+
		"was that of the source.\n\n", r.Checksums)
	t.WriteString("| single-row inserts, one connection | commits | median | p99 | max |\n|---|---|---|---|---|\n")
	for _, c := range b.Commits {
		fmt.Fprintf(&t, "| %s | %d | %.2f ms | %.2f ms | %.2f ms |\n", c.What, c.Count, 1000*c.Median,
			1000*c.P99, 1000*c.Max)
	}
	t.WriteString("\n")
	return t.String()
}

// line of the table.
func (f *Figure) line() string {
	stored, memory, disk, cpu := "–", "–", "–", "–"
	if f.Stored > 0 {
		stored = Size(f.Stored)
	}
	if f.Memory > 0 {
		memory = Size(f.Memory)
	}
	if f.Disk != nil {
		disk = Size(*f.Disk)
	}
	if f.CPU > 0 {
		cpu = fmt.Sprintf("%.1f s", f.CPU)
	}
	var beside []string
	for _, o := range f.Beside {
		beside = append(beside, fmt.Sprintf("%s: %.2f", o.What, o.Ratio))
	}
	if len(beside) == 0 {
		beside = []string{"–"}
	}
	return fmt.Sprintf("| %s | %s | %s | %.1f s | %.0f MiB/s | %s | %s | %s | %s |\n",
		f.What, Size(f.Bytes), stored, f.Seconds, f.Rate/(1<<20), memory, disk, cpu, strings.Join(beside, "; "))
}

// Size is a number of bytes as people read it.
func Size(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
}
