package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inTree writes files into a directory of their own, which becomes the working directory.
func inTree(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFindsWhatBreaksARatchetedRule(t *testing.T) {
	const instance = "internal/instance"
	const core, shell, cmd = "internal/core/x.go", "internal/operator/x.go", "cmd/x/x.go"
	const whatif, plugin, backups = "internal/whatif", "internal/plugin", "internal/backups"
	longFunc := "func f() {\n" + strings.Repeat("\t_ = 1\n", screen) + "}"
	fields := func(n int) string { return "type s struct {\n" + strings.Repeat("x, y int\n", n/2) + "}" }
	asks := func(head, does string) string { return "func (d *d) " + head + " { " + does + "; return }" }
	for name, c := range map[string]struct{ path, text, finds string }{
		"a file of 450 lines":        {cmd, strings.Repeat("\n", maxFileLines-2), ""},
		"a file of 451 lines":        {cmd, strings.Repeat("\n", maxFileLines-1), "file-lines cmd/x"},
		"a line of 120 columns":      {cmd, "\t//" + strings.Repeat("a", 114), ""},
		"a line of 121 columns":      {cmd, "\t//" + strings.Repeat("a", 115), "line-columns cmd/x"},
		"columns, not bytes":         {cmd, "\t//" + strings.Repeat("ö", 114), ""},
		"a struct of 20 fields":      {"api/x.go", fields(20), ""},
		"a struct of 22 fields":      {"api/x.go", fields(22), "struct-fields api"},
		"what a generator wrote":     {"api/zz_generated.x.go", fields(22), ""},
		"a long test":                {"test/x/x_test.go", longFunc, "test-func-lines test/x"},
		"a long function elsewhere":  {"test/x/x.go", longFunc, ""},
		"an epoch in a shell":        {instance + "/x.go", "var x = e < f.SeenEpoch", "shell-decides " + instance},
		"two epochs are one place":   {shell, "var x = c.Epoch == f.Epoch", "shell-decides internal/operator"},
		"a promotion in a shell":     {shell, "var x = s.Promotion != nil", "shell-decides internal/operator"},
		"a GTID set in a shell":      {shell, "var x = a.Executed.Contains(b)", "shell-decides internal/operator"},
		"a slice in a shell":         {shell, "import \"slices\"\nvar x = slices.Contains(a, b)", ""},
		"an epoch that is handed on": {shell, "var x = f(s.Epoch + 1)", ""},
		"an epoch in a shell's test": {"internal/operator/x_test.go", "var x = s.Epoch == 1", ""},
		"an epoch in core":           {core, "var x = s.Epoch == 1", ""},
		"an epoch in a variable":     {instance + "/x.go", "var x = l.epoch < e", "shell-decides " + instance},
		"an epoch as an argument":    {instance + "/x.go", "var x = epoch == 0", "shell-decides " + instance},
		"an epoch that is asked for": {shell, "var x = o.OfEpoch() > 1", "shell-decides internal/operator"},
		"what is withheld":           {shell, "var x = s.withheld < e", "shell-decides internal/operator"},
		"an epoch in the model":      {whatif + "/x.go", "var x = e < r.Epoch", "shell-decides " + whatif},
		"an epoch in the plugin":     {plugin + "/x.go", "var x = e < r.Epoch", "shell-decides " + plugin},
		"an epoch in backups":        {backups + "/x.go", "var x = e < r.Epoch", "shell-decides " + backups},
		"a moment in a shell":        {shell, "var x = a.GrantedAt.Equal(b)", ""},
		"a question that says":       {core, asks("isOver() bool", "d.Doing(x)"), "question-acts internal/core"},
		"a question that sets":       {core, asks("MayGo() (a, b bool)", "d.Again = b"), "question-acts internal/core"},
		"a question that tells":      {core, asks("readsOld() bool", "d.TellLags(x)"), "question-acts internal/core"},
		"a question of what is told": {core, asks("readsOld() bool", "d.Tells(x)"), ""},
		"a question that asks":       {core, asks("isOver() bool", "x := d.Status.X"), ""},
		"an act that reports":        {core, asks("takeBack() bool", "d.Doing(x)"), ""},
		"a name that begins alike":   {core, asks("issue() bool", "d.Doing(x)"), ""},
		"a question of a shell":      {shell, asks("isOver() bool", "d.Doing(x)"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := foundIn(t, c.path, c.text); got != c.finds {
				t.Errorf("found %q, want %q", got, c.finds)
			}
		})
	}
}

// foundIn returns the rules that a file of this text breaks, each with its directory.
func foundIn(t *testing.T, path, text string) string {
	t.Helper()
	inTree(t, map[string]string{path: "package p\n" + text + "\n"})
	found, err := findAll(".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, f.rule+" "+f.dir)
	}
	return strings.Join(got, "; ")
}

func TestAPackageMayBreakARuleAsOftenAsTheBaselineSays(t *testing.T) {
	wide := "// " + strings.Repeat("a", maxColumns) + "\n"
	for name, c := range map[string]struct {
		allowed, lines int
		complains      string
	}{
		"as often":   {2, 2, ""},
		"less often": {3, 2, ""},
		"more often": {1, 2, "2 places, and tools/lint/baseline.txt allows 1: a line has at most 120 columns"},
	} {
		t.Run(name, func(t *testing.T) {
			inTree(t, map[string]string{
				"internal/x/x.go": strings.Repeat(wide, c.lines) + "package x\n",
				baselineFile:      fmt.Sprintf("# a comment\nline-columns internal/x %d\n", c.allowed),
			})
			got, err := checkRatchet(".")
			text := strings.Join(got, "\n")
			if err != nil || (c.complains == "") != (text == "") || !strings.Contains(text, c.complains) {
				t.Errorf("complaints %q, %v; want %q", got, err, c.complains)
			}
			if text != "" && !strings.Contains(text, "internal/x/x.go:2: 123 columns") {
				t.Errorf("complaints %q name no place", got)
			}
		})
	}
}

func TestTheBaselineIsWhatIsFound(t *testing.T) {
	wide := "package x // " + strings.Repeat("a", maxColumns) + "\n"
	inTree(t, map[string]string{
		"internal/x/x.go": wide, "internal/y/y.go": wide,
		baselineFile: "line-columns internal/x 7\nline-columns internal/z 1\n",
	})
	rose, err := writeBaseline(".")
	if err != nil || strings.Join(rose, "; ") != "internal/y: line-columns rose from 0 to 1" {
		t.Errorf("rose %q, %v", rose, err)
	}
	text, err := os.ReadFile(baselineFile)
	_, counts, _ := strings.Cut(string(text), "\n")
	if err != nil || counts != "line-columns internal/x 1\nline-columns internal/y 1\n" {
		t.Errorf("written %q, %v", text, err)
	}
	if got, err := checkRatchet("."); err != nil || len(got) > 0 {
		t.Errorf("complains of its own baseline: %q, %v", got, err)
	}
}

func TestABaselineThatCannotBeReadIsAnError(t *testing.T) {
	for _, line := range []string{"line-columns internal/x", "no-such-rule internal/x 1"} {
		inTree(t, map[string]string{baselineFile: line + "\n"})
		if _, err := checkRatchet("."); err == nil {
			t.Errorf("takes %q", line)
		}
	}
}

func TestAShellThatDecidesNeedsAReasonInTheBaseline(t *testing.T) {
	const dir, reason = "internal/plugin", "tells which is later"
	entry := needsReason + " " + dir + " 1"
	inTree(t, map[string]string{dir + "/x.go": "package x\n\nvar x = a.Epoch < b\n", baselineFile: entry + "\n"})
	if got, err := checkRatchet("."); err == nil {
		t.Errorf("without a reason: %q", got)
	}
	if err := os.WriteFile(baselineFile, []byte(entry+" "+reason+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := checkRatchet("."); err != nil || len(got) > 0 {
		t.Errorf("with a reason: %q, %v", got, err)
	}
	if rose, err := writeBaseline("."); err != nil || len(rose) > 0 {
		t.Errorf("rose %q, %v", rose, err)
	}
	if text, err := os.ReadFile(baselineFile); err != nil || !strings.Contains(string(text), entry+" "+reason+"\n") {
		t.Errorf("written %q, %v: the reason is gone", text, err)
	}
}
