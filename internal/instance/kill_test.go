package instance

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func TestADrillKillsTheManagersMysqldAndNothingElse(t *testing.T) {
	if err := KillServer(os.Getpid()); err == nil {
		t.Error("there is no mysqld, and nothing is told of it")
	}
	sleep, err := exec.LookPath("sleep")
	must(t, err)
	program, err := os.ReadFile(sleep)
	must(t, err)
	children := map[string]*exec.Cmd{}
	for _, name := range []string{"mysqld", "other"} {
		file := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(file, program, 0o755))
		children[name] = exec.Command(file, "60")
		must(t, children[name].Start())
		defer func() { _ = children[name].Process.Kill() }()
	}
	must(t, KillServer(os.Getpid()))
	_ = children["mysqld"].Wait()
	if ws := children["mysqld"].ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGKILL {
		t.Errorf("mysqld ended by %v", ws)
	}
	if err := KillServer(1); err == nil {
		t.Error("another manager's mysqld was killed")
	}
	must(t, children["other"].Process.Signal(syscall.Signal(0)))
}
