// Package scale is what was measured of an operator with many Clusters, as
// docs/benchmarks.json keeps it and as the section "At scale" of docs/benchmarks.md tells it.
// test/scalebench measures it. It must not know how.
package scale

import (
	"fmt"
	"strings"

	"cnmsql.co/test/benchfile"
)

// Figures are the parts of docs/benchmarks.json that tell of many Clusters.
type Figures struct {
	Run  *Run  `json:"scaleRun,omitempty"`
	Rows []Row `json:"scale,omitempty"`
}

// Run is on what, when and by which command all of it was measured.
type Run struct {
	Command string `json:"command"`
	Date    string `json:"date"`
	Commit  string `json:"commit"`
	Machine string `json:"machine"`
	// Namespaces is in how many the Clusters are, and Rest for how long they rested, in
	// seconds.
	Namespaces int     `json:"namespaces"`
	Rest       float64 `json:"rest"`
}

// Row is what was measured with so many Clusters. Times are in seconds, memory in MiB.
type Row struct {
	Clusters int `json:"clusters"`
	// Made is until all Clusters that came with this row were healthy, and StartUp until an
	// operator that was started had heard all instances.
	Made    float64 `json:"made"`
	StartUp float64 `json:"startUp"`
	// CPU is the share of a core that it took at rest, Resident what it had there, and Peak
	// the most that it ever had, its start and all failures included.
	CPU      float64 `json:"cpu"`
	Resident float64 `json:"resident"`
	Peak     float64 `json:"peak"`
	// Reads and Writes are how many requests a second it sent to the API server at rest.
	Reads  float64 `json:"reads"`
	Writes float64 `json:"writes"`
	// One is of primaries that crashed one after the other, Many of primaries that crashed at
	// once, and Node of all that a node had.
	One  Reaction  `json:"one"`
	Many *Reaction `json:"many,omitempty"`
	Node *Reaction `json:"node,omitempty"`
}

// Reaction is until -rw led to another primary that takes writes.
type Reaction struct {
	Primaries int     `json:"primaries"`
	Median    float64 `json:"median"`
	Max       float64 `json:"max"`
}

// Open reads the figures that a file has.
func Open(file string) (*Figures, error) {
	f := &Figures{}
	return f, benchfile.Load(file, f)
}

// Save puts the figures into the file, in the place of those that it has.
func (f *Figures) Save(file string) error {
	return benchfile.Save(file, benchfile.Part{Name: "scaleRun", Value: f.Run},
		benchfile.Part{Name: "scale", Value: f.Rows})
}

var place = benchfile.Place{Begins: "<!-- scale, made by make generate from benchmarks.json -->",
	Ends: "<!-- end of what is made of scale -->"}

// WritePage writes what is made of the figures into the page; with nothing measured, it does
// nothing.
func (f *Figures) WritePage(page string) error {
	if f.Run == nil {
		return nil
	}
	return place.Write(page, f.String())
}

// String is a line on the run, and a table.
func (f *Figures) String() string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "\n`%s`, %s, at %s. %s. Clusters in %d namespaces; %.0f s of rest.\n\n", f.Run.Command,
		f.Run.Date, f.Run.Commit, f.Run.Machine, f.Run.Namespaces, f.Run.Rest)
	b.WriteString("| Clusters | made | start-up | CPU at rest | resident at rest | most resident | " +
		"reads, writes a second at rest | one primary crashes | many at once | the node of a third |\n" +
		"|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range f.Rows {
		_, _ = fmt.Fprintf(&b, "| %d | %.1f s | %.2f s | %.2f %% | %.0f MiB | %.0f MiB | %.2f, %.2f | %s | %s | %s |\n",
			r.Clusters, r.Made, r.StartUp, 100*r.CPU, r.Resident, r.Peak, r.Reads, r.Writes, &r.One, r.Many, r.Node)
	}
	b.WriteByte('\n')
	return b.String()
}

// String returns the number of primaries and their times in seconds, median and longest; a dash
// for nil.
func (r *Reaction) String() string {
	if r == nil {
		return "–"
	}
	return fmt.Sprintf("%d: %.2f s, %.2f s", r.Primaries, r.Median, r.Max)
}
