package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestARowSaysWhatItsRunsWere(t *testing.T) {
	b, err := openBook(filepath.Join(t.TempDir(), "none.json"))
	if err != nil {
		t.Fatal(err)
	}
	r := b.row("quorum", "killed")
	for i, gap := range []float64{0.9, 0.2, 0.4, 0.3} {
		s := sample{Gap: gap, Interruptions: 1, Acknowledged: 100, Healthy: float64(i),
			Steps: []step{{"writable", gap / 2}}}
		if i == 3 {
			s.Steps, s.Lost, s.Interruptions = nil, 2, 3
		}
		r.add(s, float64(i), time.Now())
	}
	if r.Runs != 4 || r.Min != 0.2 || r.Median != 0.35 || r.Max != 0.9 || r.Acknowledged != 400 || r.Lost != 2 ||
		r.Interruptions != 3 || r.Load != 3 {
		t.Errorf("%+v", r)
	}
	// The first run did not become Healthy without help.
	if r.Diverged != 1 || r.Healthy != (spread{2, 3}) {
		t.Errorf("diverged %d, Healthy %+v", r.Diverged, r.Healthy)
	}
	if len(r.Steps) != 1 || r.Steps[0] != (step{"writable", 0.2}) {
		t.Errorf("steps %v", r.Steps)
	}
}

func TestRowsAreKeptInTheOrderOfTheTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.json")
	b, _ := openBook(file)
	for _, r := range []*row{b.row("quorum", "switchover"), b.row("quorum", "killed"), b.row("async", "killed")} {
		r.add(sample{Gap: 1, Healthy: 1}, 0, time.Now())
	}
	b.row("async", "hung") // never measured
	if err := b.save(); err != nil {
		t.Fatal(err)
	}
	again, err := openBook(file)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, r := range again.Rows {
		order = append(order, r.Fault+" "+r.Durability)
	}
	if got := strings.Join(order, ", "); got != "killed async, killed quorum, switchover quorum" {
		t.Error(got)
	}
	forget(again, options{only: "killed", durability: "quorum"})
	if len(again.Rows) != 2 || again.Rows[0].Durability != "async" || again.Rows[1].Fault != "switchover" {
		t.Errorf("%+v", again.Rows)
	}
}

func TestTheTableSaysWhichBudgetIsMissed(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("before\n"+place.Begins+"\nold\n"+place.Ends+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &book{}
	b.row("async", "partitioned").add(sample{Gap: 17.9, Healthy: 4}, 0, time.Now())
	b.row("quorum", "partitioned").add(sample{Gap: 5.1, Healthy: 4}, 0, time.Now())
	b.row("quorum", "switchover").add(sample{Gap: 0.7}, 0, time.Now())
	for range 2 { // a table replaces the one before
		if err := writeTable(page, b); err != nil {
			t.Fatal(err)
		}
	}
	text, _ := os.ReadFile(page)
	for _, want := range []string{
		"before\n" + place.Begins, place.Ends + "\nafter\n",
		"| node partitioned | async | 1 | 17.90 s | 17.90 s | 17.90 s | max ≤ 18 s | yes |",
		"| node partitioned | quorum | 1 | 5.10 s | 5.10 s | 5.10 s | median ≤ 5 s | **no** |",
		"| planned switchover | quorum | 1 | 0.70 s | 0.70 s | 0.70 s | median ≤ 0.3 s, max ≤ 0.6 s | **no** |",
	} {
		if strings.Count(string(text), want) != 1 {
			t.Errorf("not once in the page: %s\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "old") {
		t.Error("the former table is still there")
	}
	if err := writeTable(filepath.Join(t.TempDir(), "none.md"), b); err == nil {
		t.Error("no page, and no error")
	}
}

func TestTheTimelineGivesEachStepItsShare(t *testing.T) {
	b := &book{}
	r := b.row("quorum", "killed")
	r.add(sample{Gap: 1, Steps: []step{{"granted", 0.25}, {"first acknowledged write", 1}}}, 0, time.Now())
	text := render(b)
	for _, want := range []string{"| elected: the promotion is in the status | 0.250 s | 0.250 s | 25 % |",
		"| first acknowledged write | 1.000 s | 0.750 s | 75 % |"} {
		if !strings.Contains(text, want) {
			t.Errorf("not there: %s\n%s", want, text)
		}
	}
}

func TestTheJudgeNamesWhatIsMissedAndWhatIsLost(t *testing.T) {
	b := &book{}
	b.row("quorum", "killed").add(sample{Gap: 0.5, Healthy: 4}, 0, time.Now())
	b.row("async", "killed").add(sample{Gap: 0.5, Healthy: 4, Lost: 3}, 0, time.Now())
	if err := b.judge(); err != nil {
		t.Errorf("nothing is missed, and without quorum rows may be lost: %v", err)
	}
	b.row("quorum", "switchover").add(sample{Gap: 0.7, Healthy: 1}, 0, time.Now())
	b.row("group", "killed").add(sample{Gap: 5, Lost: 1}, 0, time.Now())
	err := b.judge()
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Fatalf("two complaints are wanted: %v", err)
	}
	for _, want := range []string{"switchover under quorum: median 0.70 s", "under group: 1 acknowledged rows are " +
		"lost, and the former primary diverged in 1 of 1 runs"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestABookWithoutAFileIsKeptNowhere(t *testing.T) {
	t.Chdir(t.TempDir())
	b := &book{}
	b.row("quorum", "killed")
	if err := b.save(); err != nil || len(b.Rows) != 0 {
		t.Errorf("saved, it says %v and has %d rows", err, len(b.Rows))
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

func TestLoadedRowsStandApart(t *testing.T) {
	b := &book{}
	b.row("quorum", "killed").add(sample{Gap: 0.9, Healthy: 4}, 0, time.Now())
	b.loaded = true
	b.row("quorum", "killed").add(sample{Gap: 1.9, Healthy: 4}, 0, time.Now())
	b.row("quorum", "hung").add(sample{Gap: 99, Healthy: 4}, 0, time.Now()) // has no budget
	if err := b.judge(); err != nil {
		t.Error(err)
	}
	b.row("quorum", "killed").add(sample{Gap: 2.3, Healthy: 4}, 0, time.Now())
	err := b.judge()
	if err == nil || !strings.Contains(err.Error(), "mysqld killed, loaded under quorum: median 2.10 s") {
		t.Errorf("it says %v", err)
	}
	for _, want := range []string{"| mysqld killed | quorum | 1 | 0.90 s",
		"| mysqld killed, loaded | quorum | 2 | 1.90 s"} {
		if text := render(b); !strings.Contains(text, want) {
			t.Errorf("not there: %s\n%s", want, text)
		}
	}
	forget(b, options{only: "killed"})
	if len(b.Rows) != 2 || b.Rows[0].Loaded || b.Rows[1].Fault != "hung" {
		t.Errorf("%+v", b.Rows)
	}
}

func TestAMachineIsBusyUntilItIsNot(t *testing.T) {
	rest, err := busy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rest() // returns when nothing of it runs any more
}
