package figures

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// some figures, as they are measured.
func some() *Backups {
	b := &Backups{Run: &Run{Command: "make bench-backup", Date: "2026-11-23", Commit: "abc", Machine: "Two cores",
		Server: "MySQL 9.7.4", Data: "Four tables", Checksums: 4, Load: [2]float64{0.5, 2.25}}}
	b.Add(Figure{What: "write", Bytes: 1 << 30}, 2*time.Second)
	b.Add(Figure{What: "cp -r", Bytes: 1 << 30}, 4*time.Second, "write")
	b.Add(Figure{What: "backup", Bytes: 1 << 30, Stored: 512 << 20, Memory: 100 << 20, Disk: new(int64), CPU: 7.123},
		5*time.Second, "cp -r", "write", "what was left out")
	b.AddCommits("alone", []time.Duration{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond})
	return b
}

func TestAFigureIsHeldAgainstOthers(t *testing.T) {
	f := some().Figures[2]
	if f.Seconds != 5 || f.Rate != 214748365 || f.CPU != 7.12 {
		t.Errorf("%+v", f)
	}
	if len(f.Beside) != 2 || f.Beside[0] != (Beside{"cp -r", 1.25}) || f.Beside[1] != (Beside{"write", 2.5}) {
		t.Errorf("it is held against %+v", f.Beside)
	}
}

func TestPercentilesAreOfTheRankedInserts(t *testing.T) {
	var took []time.Duration
	for i := range 200 {
		took = append(took, time.Duration(200-i)*time.Millisecond)
	}
	b := &Backups{}
	b.AddCommits("alone", took)
	if got := b.Commits[0]; got != (Commit{"alone", 200, 0.1, 0.198, 0.2}) {
		t.Errorf("%+v", got)
	}
}

func TestWhatElseIsInTheFileStays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.json")
	if err := os.WriteFile(file, []byte(`{"rows":[{"fault":"killed"}],"backup":[{"what":"old"}],"throughput":[]}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	if err := some().Save(file); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(file)
	if !strings.Contains(string(text), `"killed"`) || !strings.Contains(string(text), `"throughput"`) ||
		strings.Contains(string(text), "old") {
		t.Errorf("%s", text)
	}
	if got, err := Open(file); err != nil || len(got.Figures) != 3 || got.Run.Checksums != 4 || len(got.Commits) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestThePageTellsWhatTheFileHas(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("before\n"+place.Begins+"\nold\n"+place.Ends+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what is made replaces what was made before
		if err := some().WritePage(page); err != nil {
			t.Fatal(err)
		}
	}
	text, _ := os.ReadFile(page)
	for _, want := range []string{
		"before\n" + place.Begins, place.Ends + "\nafter\n",
		"`make bench-backup`, 2026-11-23, at abc. Two cores; MySQL 9.7.4. Four tables. " +
			"Load average when a measurement began: 0.5 to 2.2.",
		"| write | 1.00 GiB | – | 2.0 s | 512 MiB/s | – | – | – | – |",
		"| backup | 1.00 GiB | 512 MiB | 5.0 s | 205 MiB/s | 100 MiB | 0 MiB | 7.1 s | cp -r: 1.25; write: 2.50 |",
		"all 4 tables",
		"| alone | 3 | 2.00 ms | 3.00 ms | 3.00 ms |",
	} {
		if strings.Count(string(text), want) != 1 {
			t.Errorf("not once in the page: %s\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "old") {
		t.Error("the former tables are still there")
	}
}

func TestAPageWithoutAPlaceIsToldAndNothingMeasuredNeedsNone(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := some().WritePage(page); err == nil {
		t.Error("no place, and no error")
	}
	if err := (&Backups{}).WritePage(page); err != nil {
		t.Error(err)
	}
}
