package mysql

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every parameter of a server is the operator's or the users', and somebody has thought
// about which. The file lists the users' own.
func TestEveryParameterOfAServerIsSomebodys(t *testing.T) {
	file := filepath.Join("testdata", "users-9.7.txt")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	users := strings.Fields(string(text))
	for _, name := range users {
		if o, owned := Owned(name); owned {
			t.Errorf("%s is listed as the users' and is not: %s", name, o.Why)
		}
	}
	known := parametersOfServer(t)
	for _, name := range known {
		if _, owned := Owned(name); !owned && !slices.Contains(users, name) {
			t.Errorf("mysqld knows %s. Could it change history, durability, replication or who gets in? Then it "+
				"belongs into OwnedParameters, else into %s", name, file)
		}
	}
	for _, name := range users {
		if !slices.Contains(known, name) {
			t.Errorf("mysqld does not know %s; take it out of %s", name, file)
		}
	}
}

var (
	optionLine   = regexp.MustCompile(`^  (?:-[^-], )?--([a-zA-Z0-9_-]+)`)
	variableLine = regexp.MustCompile(`^([a-z][a-zA-Z0-9_-]*)\s+\S`)
)

// parametersOfServer are the options and variables that mysqld itself tells of.
func parametersOfServer(t *testing.T) []string {
	root := os.Getenv("CNMSQL_MYSQL_ROOTFS")
	if root == "" {
		t.Skip("set CNMSQL_MYSQL_ROOTFS to the directory that `go run ./tools/image mysql-rootfs` prints, " +
			"to ask a real mysqld")
	}
	lib := filepath.Join(root, "usr/lib/x86_64-linux-gnu") + ":" + filepath.Join(root, "usr/lib/mysql/private")
	out, err := exec.CommandContext(t.Context(), root+"/lib64/ld-linux-x86-64.so.2", "--library-path", lib,
		root+"/usr/sbin/mysqld",
		"--no-defaults", "--user=root", "--basedir="+root+"/usr", "--datadir="+t.TempDir(),
		"--lc-messages-dir="+root+"/usr/share/mysql", "--verbose", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	options, variables, found := strings.Cut(string(out), "\n---------")
	variables, _, ends := strings.Cut(variables, "\n\n")
	if !found || !ends {
		t.Fatalf("mysqld tells something else than its parameters: %.200s", out)
	}
	var names []string
	for pattern, text := range map[*regexp.Regexp]string{optionLine: options, variableLine: variables} {
		for line := range strings.Lines(text) {
			if m := pattern.FindStringSubmatch(line); m != nil {
				names = append(names, NormalParameter(m[1]))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
