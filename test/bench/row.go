package main

import (
	"cmp"
	"math"
	"slices"
	"time"

	"cnmsql.co/test/benchfile"
)

// row is what was measured of one fault under one durability. Times are seconds.
type row struct {
	Topology   string `json:"topology"`
	Durability string `json:"durability"`
	Fault      string `json:"fault"`
	// Loaded: while as many connections as loadedConnections write as fast as they can, and
	// something else keeps every core and the disk busy.
	Loaded bool `json:"loaded,omitempty"`
	Runs   int  `json:"runs"`
	// Min, Median and Max of the longest gap between two acknowledged writes.
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
	// Interruptions is the most gaps over a fifth of a second in one run.
	Interruptions int `json:"interruptions"`
	Acknowledged  int `json:"acknowledged"`
	Lost          int `json:"lost"`
	// Healthy is the time until all instances were Healthy again by themselves, from
	// the fault, or from its end where a node was lost.
	Healthy spread `json:"secondsUntilHealthy"`
	// Diverged counts the runs after which the former primary waited for a human.
	Diverged int `json:"diverged"`
	// Steps are the medians of when each step was seen, since the fault.
	Steps []step `json:"steps"`
	// Load is the highest load average of one minute seen at a run's end.
	Load    float64  `json:"load"`
	Date    string   `json:"date"`
	Samples []sample `json:"samples"`
}

// isLossless reports whether not one acknowledged row may be missing after the fault.
func (r *row) isLossless() bool { return r.Durability == "quorum" || r.Durability == "group" }

type spread struct {
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// step of what happens between a fault and the first acknowledged write.
type step struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// sample is one run.
type sample struct {
	Gap           float64 `json:"gap"`
	Interruptions int     `json:"interruptions"`
	Acknowledged  int     `json:"acknowledged"`
	Lost          int     `json:"lost"`
	// Healthy is 0 when a human had to help.
	Healthy float64 `json:"healthy"`
	Steps   []step  `json:"steps"`
}

// book is the file of all rows; with no file, it is kept nowhere.
type book struct {
	file  string
	Rows  []*row `json:"rows"`
	Floor *floor `json:"floor,omitempty"`
	// loaded: the rows that are measured now are.
	loaded bool
}

func openBook(file string) (*book, error) {
	b := &book{file: file}
	return b, benchfile.Load(file, b)
}

// row finds or makes the row of a fault.
func (b *book) row(durability, fault string) *row {
	for _, r := range b.Rows {
		if r.Durability == durability && r.Fault == fault && r.Loaded == b.loaded {
			return r
		}
	}
	r := &row{Topology: durabilities[durabilityOrder(durability)].topology, Durability: durability, Fault: fault,
		Loaded: b.loaded}
	b.Rows = append(b.Rows, r)
	slices.SortStableFunc(b.Rows, func(a, c *row) int {
		return cmp.Or(compareBool(a.Loaded, c.Loaded), cmp.Compare(orderOf(a.Fault), orderOf(c.Fault)),
			cmp.Compare(durabilityOrder(a.Durability), durabilityOrder(c.Durability)))
	})
	return r
}

// compareBool has false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// title of the row, for people.
func (r *row) title() string {
	if r.Loaded {
		return faults[orderOf(r.Fault)].title + ", loaded"
	}
	return faults[orderOf(r.Fault)].title
}

func (b *book) save() error {
	b.Rows = slices.DeleteFunc(b.Rows, func(r *row) bool { return len(r.Samples) == 0 })
	if b.file == "" {
		return nil
	}
	return benchfile.Save(b.file, benchfile.Part{Name: "rows", Value: b.Rows},
		benchfile.Part{Name: "floor", Value: b.Floor})
}

// add counts a run into the row.
func (r *row) add(s sample, load float64, at time.Time) {
	r.Samples = append(r.Samples, s)
	r.Load, r.Date = max(r.Load, load), at.UTC().Format(time.DateOnly)
	var gaps, healthy []float64
	steps := map[string][]float64{}
	var order []string
	r.Acknowledged, r.Lost, r.Diverged, r.Interruptions = 0, 0, 0, 0
	for _, s := range r.Samples {
		gaps = append(gaps, s.Gap)
		r.Acknowledged, r.Lost = r.Acknowledged+s.Acknowledged, r.Lost+s.Lost
		r.Interruptions = max(r.Interruptions, s.Interruptions)
		if s.Healthy > 0 {
			healthy = append(healthy, s.Healthy)
		} else {
			r.Diverged++
		}
		for _, st := range s.Steps {
			if steps[st.Name] == nil {
				order = append(order, st.Name)
			}
			steps[st.Name] = append(steps[st.Name], st.Seconds)
		}
	}
	r.Runs, r.Min, r.Median, r.Max = len(gaps), slices.Min(gaps), median(gaps), slices.Max(gaps)
	r.Healthy = spread{}
	if len(healthy) > 0 {
		r.Healthy = spread{median(healthy), slices.Max(healthy)}
	}
	r.Steps = nil
	for _, name := range order {
		r.Steps = append(r.Steps, step{name, median(steps[name])})
	}
	slices.SortStableFunc(r.Steps, func(a, b step) int { return cmp.Compare(a.Seconds, b.Seconds) })
}

// median of some values, the mean of the middle two where there are two.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return milli((sorted[(n-1)/2] + sorted[n/2]) / 2)
}

// milli rounds seconds to thousandths.
func milli(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }

func secondsOf(d time.Duration) float64 { return milli(d.Seconds()) }
