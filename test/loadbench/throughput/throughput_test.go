package throughput

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	first = Run{Begun: "2026-11-24T01:00:00Z", Command: "make bench-load", Commit: "abc", Machine: "Two cores",
		Server: "MySQL 9.7.4", TableRows: 100000, Warm: 3, Window: 10}
	second = Run{Begun: "2026-11-24T02:00:00Z", Command: "make bench-load ONLY=quorum"}
)

func row(workload, durability string, connections int, tps, p99 float64) Row {
	return Row{Workload: workload, Durability: durability, Connections: connections,
		TPS: tps, P50: p99 / 2, P99: p99, Transactions: int(10 * tps)}
}

func lines(l *List) string {
	var out []string
	for line := range strings.Lines(l.Render()) {
		if strings.HasPrefix(line, "| insert") || strings.HasPrefix(line, "| oltp") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return strings.Join(out, "\n")
}

func TestTheGoalsAreJudgedBesideThePair(t *testing.T) {
	l := &List{}
	lag := 3.25 // a quarter of the time that the clients wrote
	follows := row("insert", Pair, 16, 100, 10)
	follows.Lag, follows.Errors, follows.NotAwaited, follows.Load = &lag, 2, 3, 4.5
	l.Add(first, row("insert", Quorum, 16, 90, 15))
	l.Add(first, follows)
	l.Add(first, row("insert", Quorum, 1, 89.9, 15.1))
	l.Add(first, row("insert", Pair, 1, 100, 10))
	l.Add(first, row("insert", "group", 1, 10, 10))
	l.Add(first, row("insert", Bare, 1, 400, 5))
	l.Add(first, row("insert", Trio, 16, 60, 30))
	want := `| insert | 1 | bare | 400.0 | 2.50 ms | 5.00 ms | – | – | 0 | 0 | 0.0 | 4.000 | 0.500 | – | – |
| insert | 1 | pair | 100.0 | 5.00 ms | 10.00 ms | – | – | 0 | 0 | 0.0 | – | – | – | – |
| insert | 1 | quorum | 89.9 | 7.55 ms | 15.10 ms | – | – | 0 | 0 | 0.0 | 0.899 | 1.510 | ` +
		`tps ≥ 0.9: **not met**; p99 ≤ 1.5: **not met** | – |
| insert | 1 | group | 10.0 | 5.00 ms | 10.00 ms | – | – | 0 | 0 | 0.0 | 0.100 | 1.000 | – | – |
| insert | 16 | pair | 100.0 | 5.00 ms | 10.00 ms | 3.25 s | 80.0 | 2 | 3 | 4.5 | – | – | – | 1.667, 1.333, 0.333 |
| insert | 16 | trio | 60.0 | 15.00 ms | 30.00 ms | – | – | 0 | 0 | 0.0 | 0.600 | 3.000 | – | – |
| insert | 16 | quorum | 90.0 | 7.50 ms | 15.00 ms | – | – | 0 | 0 | 0.0 | 0.900 | 1.500 | ` +
		`tps ≥ 0.9: met; p99 ≤ 1.5: met | 1.500, 1.500, 0.500 |`
	if got := lines(l); got != want {
		t.Errorf("the table has\n%s", got)
	}
}

func TestRowsOfAnotherRunOrWorkloadAreNotHeldAgainstEachOther(t *testing.T) {
	l := &List{}
	l.Add(first, row("insert", Pair, 1, 100, 10))
	l.Add(first, row("oltp_read_write", Quorum, 1, 100, 10))
	l.Add(first, row("insert", Quorum, 16, 100, 10))
	l.Add(second, row("insert", Quorum, 1, 100, 10))
	if got := lines(l); strings.Contains(got, "met") || strings.Count(got, "\n") != 3 {
		t.Errorf("the table has\n%s", got)
	}
	const told = "`make bench-load`, begun 2026-11-24T01:00:00Z, at abc. Two cores; MySQL 9.7.4. 100000 rows"
	if text := l.Render(); strings.Count(text, told) != 1 || strings.Count(text, second.Command) != 1 {
		t.Error(text)
	}
}

func TestWhatIsMeasuredAgainReplacesWhatWas(t *testing.T) {
	l := &List{}
	l.Add(first, row("insert", Quorum, 1, 100, 10))
	l.Add(first, row("insert", Quorum, 16, 100, 10))
	l.Add(second, row("insert", Quorum, 1, 200, 10))
	if len(l.Rows) != 2 || l.Rows[0].TPS != 200 || l.Rows[0].Run != second.Begun || len(l.Runs) != 2 {
		t.Errorf("%+v", l)
	}
	l.Add(second, row("insert", Quorum, 16, 300, 10))
	if len(l.Rows) != 2 || len(l.Runs) != 1 || l.Runs[0].Begun != second.Begun {
		t.Errorf("%+v", l)
	}
}

func TestTheFileHasTheNamesThatWereAgreedAndIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.json")
	l, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	lag := 0.0
	r := row("insert", Quorum, 1, 100.5, 10)
	r.Lag = &lag
	l.Add(first, r)
	l.Add(first, row("insert", Bare, 1, 100, 10))
	if err := l.Save(file); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(file)
	var got struct{ Throughput []map[string]any }
	if err := json.Unmarshal(text, &got); err != nil || len(got.Throughput) != 2 {
		t.Fatalf("%v: %s", err, text)
	}
	for name, want := range map[string]any{
		"workload": "insert", "durability": "quorum", "connections": 1.0, "tps": 100.5, "p50": 5.0,
		"p99": 10.0, "lag": 0.0,
	} {
		if got.Throughput[1][name] != want {
			t.Errorf("%s is %v", name, got.Throughput[1][name])
		}
	}
	if _, told := got.Throughput[0]["lag"]; told {
		t.Error("a server without a replica has a lag")
	}
	if again, err := Open(file); err != nil || again.Render() != l.Render() {
		t.Errorf("%v: %+v", err, again)
	}
}

func TestThePageSaysThatNothingIsMeasured(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("before\n"+place.Begins+"\nold\n"+place.Ends+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&List{}).WritePage(page); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(page)
	if got := string(text); !strings.Contains(got, "Nothing is measured yet.") || strings.Contains(got, "old") ||
		!strings.HasSuffix(got, "\nafter\n") {
		t.Error(got)
	}
}
