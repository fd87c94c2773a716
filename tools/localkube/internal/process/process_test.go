package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNameOfAProgramDoesNotConfuseStat(t *testing.T) {
	stat := "42 (evil) R 1 2) S 1 42 42 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 98765 1000 10"
	state, start, ok := parseStat(stat)
	if !ok || state != "S" || start != "98765" {
		t.Errorf("state %q, start %q, %v", state, start, ok)
	}
}

func TestIdentitySurvivesItsFile(t *testing.T) {
	want := identity{pid: 42, start: "98765", boot: "b-1"}
	if got, err := parseIdentity(want.String() + "\n"); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

func newProcess(t *testing.T, argv ...string) Process {
	dir := t.TempDir()
	p := Process{Name: "test", Argv: argv, LogFile: filepath.Join(dir, "log"), PidFile: filepath.Join(dir, "pid")}
	t.Cleanup(func() { p.Kill() })
	return p
}

func TestEnsureStartsOnce(t *testing.T) {
	p := newProcess(t, "sleep", "60")
	if err := p.Ensure(); err != nil {
		t.Fatal(err)
	}
	first, ok := p.Running()
	if !ok {
		t.Fatal("it does not run")
	}
	if err := p.Ensure(); err != nil {
		t.Fatal(err)
	}
	if second, _ := p.Running(); second != first {
		t.Errorf("process %d was replaced by %d", first, second)
	}
}

func TestKilledProcessDoesNotRun(t *testing.T) {
	p := newProcess(t, "sleep", "60")
	if err := p.Ensure(); err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Running(); ok {
		t.Error("it runs")
	}
}

func TestSomebodyElsesProcessIsNotOurs(t *testing.T) {
	p := newProcess(t)
	id, _ := observe(os.Getpid())
	for _, other := range []identity{
		{pid: id.pid, start: id.start + "0", boot: id.boot},
		{pid: id.pid, start: id.start, boot: "another boot"},
	} {
		os.WriteFile(p.PidFile, []byte(other.String()), 0o644)
		if _, ok := p.Running(); ok {
			t.Errorf("%s is taken for ours", other)
		}
	}
}

func TestTailIsTheEndOfTheLog(t *testing.T) {
	p := newProcess(t)
	os.WriteFile(p.LogFile, []byte(strings.Repeat("old\n", 100000)+"last but one\nlast\n"), 0o644)
	if got := p.Tail(2); got != "last but one\nlast" {
		t.Errorf("got %q", got)
	}
}
