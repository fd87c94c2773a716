package main

import (
	"errors"
	"fmt"
	"strings"

	"cnmsql.co/test/benchfile"
)

// place of the table.
var place = benchfile.Place{
	Begins: "<!-- made by make generate from benchmarks.json -->", Ends: "<!-- end of what is made -->",
}

// budget is what the median and the longest gap may be, in seconds; 0 for no bound.
type budget struct{ median, max float64 }

// leaseTTL in seconds.
const leaseTTL = 15

// anotherLeads in seconds: another operator takes the lead, and reaches the instances.
const anotherLeads = 2

// loadedBudgets are those of loaded rows, by fault, under any durability.
var loadedBudgets = map[string]budget{
	"killed": {2, 0}, "pod-force-deleted": {2, 0}, "pod-deleted": {1, 0}, "switchover": {1, 0},
	"partitioned": {5, 0}, "powered-off": {5, 0},
}

// budget of the row; a loaded one of a fault that has none is not judged.
func (r *row) budget() budget {
	if r.Loaded {
		return loadedBudgets[r.Fault]
	}
	return budgetOf(r.Fault, r.Durability)
}

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
	lead := 0.0
	if strings.HasPrefix(fault, "operator-") {
		lead = anotherLeads
	}
	switch durability {
	case "quorum":
		return budget{5 + lead, 0}
	case "group":
		return budget{8 + lead, 0}
	}
	return budget{0, leaseTTL + 3 + lead}
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

// judge names every budget that is missed, and every row that was lost where none may be.
func (b *book) judge() error {
	var all []error
	for _, r := range b.Rows {
		where := r.title() + " under " + r.Durability
		if wish := r.budget(); !wish.isMet(r) {
			all = append(all, fmt.Errorf("%s: median %.2f s, max %.2f s of %d runs; wanted: %s", where, r.Median,
				r.Max, r.Runs, wish))
		}
		if r.isLossless() && r.Lost+r.Diverged > 0 {
			all = append(all, fmt.Errorf(
				"%s: %d acknowledged rows are lost, and the former primary diverged in %d of %d runs", where,
				r.Lost, r.Diverged, r.Runs))
		}
	}
	return errors.Join(all...)
}

// writeTable replaces the made part of the page.
func writeTable(file string, b *book) error { return place.Write(file, render(b)) }

func render(b *book) string {
	var t strings.Builder
	t.WriteString("\n| fault | durability | runs | min | median | max | budget | met | gaps > 0.2 s | acknowledged | " +
		"lost | Healthy again: median, max | diverged | load |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range b.Rows {
		wish := r.budget()
		met := "yes"
		if !wish.isMet(r) {
			met = "**no**"
		}
		healthy := "–"
		if r.Healthy.Max > 0 {
			healthy = fmt.Sprintf("%.1f s, %.1f s", r.Healthy.Median, r.Healthy.Max)
		}
		fmt.Fprintf(&t, "| %s | %s | %d | %.2f s | %.2f s | %.2f s | %s | %s | %d | %d | %d | %s | %d | %.1f |\n",
			r.title(), r.Durability, r.Runs, r.Min, r.Median, r.Max, wish, met, r.Interruptions, r.Acknowledged, r.Lost,
			healthy, r.Diverged, r.Load)
	}
	for _, r := range b.Rows {
		if r.isLossless() {
			t.WriteString(timeline(r))
		}
	}
	if f := b.Floor; f != nil {
		fmt.Fprintf(&t, "\n| Kubernetes alone: write to the Service → a new connection reaches another Pod (%d runs) "+
			"| min | median | max |\n|---|---|---|---|\n"+
			"| no endpoint had changed for 3 s | %.3f s | %.3f s | %.3f s |\n"+
			"| another endpoint had changed 0.1 s before | %.3f s | %.3f s | %.3f s |\n",
			f.Runs, f.Quiet[0], f.Quiet[1], f.Quiet[2], f.Busy[0], f.Busy[1], f.Busy[2])
	}
	t.WriteString("\n")
	return t.String()
}

// timeline tells when each step was seen, and which share of the whole it took.
func timeline(r *row) string {
	if len(r.Steps) == 0 {
		return ""
	}
	var t strings.Builder
	fmt.Fprintf(&t, "\n**%s, %s** (medians of %d runs)\n\n| step | seen after | took | share |\n|---|---|---|---|\n",
		r.title(), r.Durability, r.Runs)
	last, whole := 0.0, r.Steps[len(r.Steps)-1].Seconds
	for _, s := range r.Steps {
		fmt.Fprintf(&t, "| %s | %.3f s | %.3f s | %.0f %% |\n", describe(s.Name), s.Seconds, s.Seconds-last,
			100*(s.Seconds-last)/whole)
		last = s.Seconds
	}
	return t.String()
}

// described are the names of steps as people read them.
var described = map[string]string{
	"step Prove":      "detected: the operator asks for a proof",
	"step Elect":      "proven: positions are read",
	"step CatchUp":    "the operator begins",
	"step Demote":     "the old primary is told to stop writes",
	"step SetPrimary": "the operator decides whom the group is asked for",
	"granted":         "elected: the promotion is in the status",
	"takes the lease": "the new primary takes the Lease",
	"opens":           "the new primary closes sessions, requires acknowledgements, opens",
	"writable":        "promoted: it takes writes",
	"service":         "routed: -rw selects it",
	"endpoints":       "Kubernetes' endpoints name it",
}

func describe(step string) string {
	if text, known := described[step]; known {
		return text
	}
	return step
}
