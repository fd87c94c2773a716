package client

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheOptionFileIsPrivateAndReadableByPath(t *testing.T) {
	path, err := optionFile("[client]\n")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: mysql ignores option files that others may write", info.Mode())
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "[client]\n" {
		t.Errorf("read %q, %v", text, err)
	}
}

func TestNoPasswordIsInArgumentsOrEnvironment(t *testing.T) {
	got := environment([]string{"A=1", "MYSQL_PWD=x", "MYSQL_HISTFILE=/h"})
	if strings.Join(got, " ") != "A=1 MYSQL_HISTFILE=/dev/null" {
		t.Error(got)
	}
}

func TestQuotingKeepsEveryCharacter(t *testing.T) {
	if got := quote("a\"b\\c#d\n"); got != `"a\"b\\c#d\n"` {
		t.Error(got)
	}
}

// TestMySQLReadsTheOptions asks MySQL's own parser of option files, where there
// is one on the PATH.
func TestMySQLReadsTheOptions(t *testing.T) {
	tool, err := exec.LookPath("my_print_defaults")
	if err != nil {
		t.Skip("needs my_print_defaults of MySQL on the PATH")
	}
	secret := `p"w\d # 'x' \n;`
	path := filepath.Join(t.TempDir(), "my.cnf")
	if err := os.WriteFile(path, []byte(options("root", secret, "demo-1")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, "--defaults-file="+path, "--show", "client").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "--password="+secret+"\n") {
		t.Errorf("got %s", out)
	}
}

func TestAnImageWithoutClientIsTold(t *testing.T) {
	if _, err := os.Stat("/usr/bin/mysql"); err == nil {
		t.Skip("this machine has a client")
	}
	_, err := find("mysql", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "port-forward") {
		t.Error(err)
	}
}

func TestTheClientIsFoundOnThePath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mysql"), []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := find("mysql", dir); err != nil || got != filepath.Join(dir, "mysql") {
		t.Error(got, err)
	}
}
