package figures

import (
	"cmp"
	"math"
	"slices"
	"time"

	"cnmsql.co/test/benchfile"
)

// Backups are the parts of docs/benchmarks.json that tell of backups.
type Backups struct {
	Run     *Run     `json:"backupRun,omitempty"`
	Figures []Figure `json:"backup,omitempty"`
	Commits []Commit `json:"backupCommits,omitempty"`
}

// Run is on what, when and by which command all of it was measured.
type Run struct {
	Command string `json:"command"`
	Date    string `json:"date"`
	Commit  string `json:"commit"`
	Machine string `json:"machine"`
	Server  string `json:"server"`
	// Data tells what the tables hold, and Checksums how many of them were equal on what
	// was restored.
	Data      string `json:"data"`
	Checksums int    `json:"checksums"`
	// Load is the lowest and the highest load average of a minute that a figure began with.
	Load [2]float64 `json:"load"`
}

// Figure is what was measured of one way to copy the data.
type Figure struct {
	What string `json:"what"`
	// Bytes is how much was copied, before compression, and Stored what became of it, if
	// that is less.
	Bytes  int64 `json:"bytes"`
	Stored int64 `json:"stored,omitempty"`
	// Seconds until all of it was on disk; Rate is bytes per second.
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"rate"`
	// Memory is the most that was resident of the process that did it, in bytes, and CPU
	// the seconds that it computed; 0 where it was not measured.
	Memory int64   `json:"memory,omitempty"`
	CPU    float64 `json:"cpu,omitempty"`
	// Disk is how many bytes that process had written to disks of this machine, a store in a
	// directory among them; nil where it was not measured.
	Disk   *int64   `json:"disk,omitempty"`
	Beside []Beside `json:"beside,omitempty"`
}

// Beside is what a figure is held against: Ratio is its seconds by those of the other.
type Beside struct {
	What  string  `json:"what"`
	Ratio float64 `json:"ratio"`
}

// Commit is how long single-row inserts waited for their OK, in seconds.
type Commit struct {
	What   string  `json:"what"`
	Count  int     `json:"count"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// Add adds a figure, held against others of that are there already.
func (b *Backups) Add(f Figure, took time.Duration, beside ...string) {
	seconds := took.Seconds()
	f.Seconds, f.Rate, f.CPU = round(seconds, 3), round(float64(f.Bytes)/seconds, 0), round(f.CPU, 2)
	for _, other := range b.Figures {
		if slices.Contains(beside, other.What) && other.Seconds > 0 {
			f.Beside = append(f.Beside, Beside{other.What, round(seconds/other.Seconds, 2)})
		}
	}
	slices.SortStableFunc(f.Beside, func(x, y Beside) int {
		return cmp.Compare(slices.Index(beside, x.What), slices.Index(beside, y.What))
	})
	b.Figures = append(b.Figures, f)
}

// AddCommits adds what some inserts took, of which there is one at least.
func (b *Backups) AddCommits(what string, took []time.Duration) {
	slices.Sort(took)
	at := func(share float64) float64 {
		return round(took[int(math.Ceil(share*float64(len(took))))-1].Seconds(), 5)
	}
	b.Commits = append(b.Commits, Commit{What: what, Count: len(took), Median: at(0.5), P99: at(0.99), Max: at(1)})
}

func round(value float64, digits int) float64 {
	unit := math.Pow10(digits)
	return math.Round(value*unit) / unit
}

// Open reads the figures that a file has.
func Open(file string) (*Backups, error) {
	b := &Backups{}
	return b, benchfile.Load(file, b)
}

// Save puts the figures into the file, in the place of those that it has.
func (b *Backups) Save(file string) error {
	return benchfile.Save(file, benchfile.Part{Name: "backupRun", Value: b.Run},
		benchfile.Part{Name: "backup", Value: b.Figures}, benchfile.Part{Name: "backupCommits", Value: b.Commits})
}
