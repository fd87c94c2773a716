package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestComplainsOfWhatBreaksAHouseRule(t *testing.T) {
	long := "package p\nfunc f() {\n" + strings.Repeat("\t_ = 1\n", 60) + "}\n"
	for name, c := range map[string]struct{ path, text, says string }{
		"a long function":           {"internal/x/x.go", long, "62 lines"},
		"a long function in a test": {"internal/x/x_test.go", long, ""},
		"a sleep": {"internal/x/x.go",
			"package p\nimport \"time\"\nfunc f() { time.Sleep(1) }\n", "does not sleep"},
		"a sleep in a test bed": {"test/x/x.go",
			"package p\nimport \"time\"\nfunc f() { time.Sleep(1) }\n", ""},
		"an event of any length": {"internal/x/x.go", "package p\nfunc f() { r.Recorder.Eventf(1) }\n",
			"tell.Event"},
		"an event as long as it may be": {"internal/tell/x.go", "package p\nfunc f() { to.Eventf(1) }\n", ""},
		"core that knows Kubernetes": {"internal/core/x.go", "package p\nimport _ \"k8s.io/api/core/v1\"\n",
			"plain data"},
		"core that knows GTIDs": {"internal/core/x.go",
			"package p\nimport _ \"cnmsql.co/internal/gtid\"\n", ""},
		"a topology that knows another": {"internal/core/group/x.go",
			"package p\nimport _ \"cnmsql.co/internal/core/async\"\n", "knows nothing of the other"},
		"and the other way round": {"internal/core/async/x.go",
			"package p\nimport _ \"cnmsql.co/internal/core/group\"\n", "knows nothing of the other"},
		"a topology and what both need": {"internal/core/async/x.go",
			"package p\nimport _ \"cnmsql.co/internal/core/draft\"\n", ""},
		"who chooses the topology": {"internal/core/topology/x.go",
			"package p\nimport _ \"cnmsql.co/internal/core/group\"\n", ""},
		"a package above the operator": {"internal/plugin/x.go",
			"package p\nimport _ \"cnmsql.co/internal/operator\"\n", "nothing imports"},
		"the command above the operator": {"cmd/cnmsql/x.go",
			"package p\nimport _ \"cnmsql.co/internal/operator\"\n", ""},
		"a mode that is compared": {"internal/core/async/x.go", "package p\nvar x = m == " +
			"core.DurabilityQuorum\n", "DurabilityQuorum: ask"},
		"a mode of the API": {"internal/plugin/x.go",
			"package p\nvar x = v1alpha1.DurabilityQuorum != m\n", "DurabilityQuorum: ask"},
		"a mode that is a case": {"internal/x/x.go", "package p\nfunc f() { switch m {\ncase " +
			"core.DurabilityAsync, core.DurabilityPreferred:\n} }\n", "DurabilityPreferred: ask"},
		"what a mode means": {modesFile, "package core\nvar x = m == DurabilityQuorum\n", ""},
		"a mode that is compared here": {"internal/core/x.go", "package core\nvar x = m == DurabilityQuorum\n",
			"DurabilityQuorum: ask"},
		"a mode that is handed on": {"internal/x/x.go", "package p\nvar x = core.Durability{Mode: " +
			"core.DurabilityAsync}\n", ""},
	} {
		t.Run(name, func(t *testing.T) { holdsTo(t, c.path, c.text, c.says) })
	}
}

func TestComplainsOfAStoryThatDoesNotSayWhatItShows(t *testing.T) {
	for text, says := range map[string]string{
		"func TestX(t *testing.T) {}\n":                                "TestX does not say which capability",
		"// TestX: x is what is shown.\nfunc TestX(t *testing.T) {}\n": "",
		"func TestMain(m *testing.M) {}\n":                             "",
		"func (w *world) TestX() {}\n":                                 "",
	} {
		holdsTo(t, "test/e2e/x_test.go", "package e2e\n\n"+text, says)
	}
}

// holdsTo holds what is said of a tree of one file against what should be; "" for nothing.
func holdsTo(t *testing.T, path, text, says string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	complaints, err := check(".")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(complaints, "\n")
	if says == "" && got != "" || !strings.Contains(got, says) {
		t.Errorf("of %q the complaints are %q, want %q", text, got, says)
	}
}

func TestComplainsOfTestsThatDocumentsNameAndNobodyWrote(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, text := range map[string]string{
		"a/a_test.go": "package a\nfunc TestOne(t *testing.T) { step(\"Second\") }\n",
		"docs/a.md":   "held by `TestOne`, `TestOne/Second` and `TestOne` (first), but TestTwo is no name in quotes",
		"docs/b.md":   "`TestOne/Third` and `TestTwo`",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := checkNamed(".")
	if err != nil || strings.Join(got, "\n") != "docs/b.md: there is no test TestOne/Third\ndocs/b.md: there is no "+
		"test TestTwo" {
		t.Errorf("complaints %q, %v", got, err)
	}
}
