package main

import (
	"fmt"
	"os"
	"strings"
)

// The table stands between these two lines.
const (
	tableBegins = "<!-- made by make generate from benchmarks.json -->"
	tableEnds   = "<!-- end of what is made -->"
)

// budget is what the median and the longest gap may be, in seconds; 0 for no bound.
type budget struct{ median, max float64 }

// leaseTTL in seconds.
const leaseTTL = 15

// budgets of the faults; where a node is lost, quorum has another.
func budgetOf(fault, durability string) budget {
	switch fault {
	case "killed":
		if durability == "group" {
			return budget{7, 0}
		}
		return budget{1, 2}
	case "pod-deleted":
		return budget{0.5, 0}
	case "pod-force-deleted":
		if durability == "group" {
			return budget{1.5, 0}
		}
		return budget{1, 0}
	case "hung":
		return budget{0, 10}
	case "switchover":
		return budget{0.3, 0.6}
	}
	switch durability {
	case "quorum":
		return budget{5, 0}
	case "group":
		return budget{8, 0}
	}
	return budget{0, leaseTTL + 3}
}

func (b budget) String() string {
	var parts []string
	if b.median > 0 {
		parts = append(parts, fmt.Sprintf("median ≤ %g s", b.median))
	}
	if b.max > 0 {
		parts = append(parts, fmt.Sprintf("max ≤ %g s", b.max))
	}
	return strings.Join(parts, ", ")
}

func (b budget) isMet(r *row) bool {
	return (b.median == 0 || r.Median <= b.median) && (b.max == 0 || r.Max <= b.max)
}

// writeTable replaces the made part of the page.
func writeTable(file string, b *book) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	head, rest, found := strings.Cut(string(text), tableBegins+"\n")
	_, tail, closed := strings.Cut(rest, tableEnds)
	if !found || !closed {
		return fmt.Errorf("%s has no place for the table: the lines %q and %q", file, tableBegins, tableEnds)
	}
	return os.WriteFile(file, []byte(head+tableBegins+"\n"+render(b)+tableEnds+tail), 0o644)
}

func render(b *book) string {
	var t strings.Builder
	t.WriteString("\n| fault | durability | runs | min | median | max | budget | met | gaps > 0.2 s | acknowledged | lost | Healthy again: median, max | diverged | load |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range b.Rows {
		wish := budgetOf(r.Fault, r.Durability)
		met := "yes"
		if !wish.isMet(r) {
			met = "**no**"
		}
		healthy := "–"
		if r.Healthy.Max > 0 {
			healthy = fmt.Sprintf("%.1f s, %.1f s", r.Healthy.Median, r.Healthy.Max)
		}
		fmt.Fprintf(&t, "| %s | %s | %d | %.2f s | %.2f s | %.2f s | %s | %s | %d | %d | %d | %s | %d | %.1f |\n", faults[orderOf(r.Fault)].title, r.Durability, r.Runs,
			r.Min, r.Median, r.Max, wish, met, r.Interruptions, r.Acknowledged, r.Lost, healthy, r.Diverged, r.Load)
	}
	t.WriteString("\nWhen each step was seen, in seconds since the fault: medians over the runs in which it was.\n")
	for _, r := range b.Rows {
		if r.Durability != "quorum" || len(r.Steps) == 0 {
			continue
		}
		fmt.Fprintf(&t, "\n**%s, %s:** ", faults[orderOf(r.Fault)].title, r.Durability)
		var parts []string
		for _, s := range r.Steps {
			parts = append(parts, fmt.Sprintf("%s %.3f", s.Name, s.Seconds))
		}
		t.WriteString(strings.Join(parts, " → ") + "\n")
	}
	if f := b.Floor; f != nil {
		fmt.Fprintf(&t, "\n| Kubernetes alone: write to the Service → a new connection reaches another Pod (%d runs) | min | median | max |\n|---|---|---|---|\n"+
			"| no endpoint had changed for 3 s | %.3f s | %.3f s | %.3f s |\n| another endpoint had changed 0.1 s before | %.3f s | %.3f s | %.3f s |\n",
			f.Runs, f.Quiet[0], f.Quiet[1], f.Quiet[2], f.Busy[0], f.Busy[1], f.Busy[2])
	}
	t.WriteString("\n")
	return t.String()
}
