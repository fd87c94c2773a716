package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestComplainsOfListsAndNumbersThatAreOutOfDate(t *testing.T) {
	c := claim{
		what: "order", source: "a.go", names: regexp.MustCompile(`Verb = "([^"]+)"`),
		doc: "docs/a", written: "`%s`", counted: regexp.MustCompile(`one of (\S+) orders`),
	}
	const noNumber = "docs/a: tells no number where \"one of (\\\\S+) orders\" should"
	const tooFew = "docs/a: \"one of 1 orders\", but a.go has two"
	const source = "Verb = \"demote\"\nVerb = \"freeze\"\n"
	for name, w := range map[string]struct{ source, doc, says string }{
		"all is there":       {source, "one of two orders: `demote`, `freeze`", ""},
		"a name is missing":  {source, "one of two orders: `demote`, freeze", "docs/a: lacks the order freeze of a.go"},
		"too few are told":   {source, "one of 1 orders: `demote`, `freeze`", tooFew},
		"no number is told":  {source, "`demote`, `freeze`", noNumber},
		"figures, not words": {strings.Repeat("Verb = \"x\"\n", 20), "one of 20 orders: `x`", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inTree(t, map[string]string{"a.go": w.source})
			names, err := c.defined(".")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(c.judge(names, w.doc), "; "); got != w.says {
				t.Errorf("complaints %q, want %q", got, w.says)
			}
		})
	}
}

func TestASourceThatDefinesNothingIsAnError(t *testing.T) {
	inTree(t, map[string]string{"a.go": "package a\n"})
	c := claim{what: "order", source: "a.go", names: regexp.MustCompile(`Verb = "([^"]+)"`)}
	if names, err := c.defined("."); err == nil {
		t.Errorf("found %q and no error", names)
	}
}

func TestComplainsOfPackagesThatTheMapDoesNotList(t *testing.T) {
	inTree(t, map[string]string{
		"CONTRIBUTING.md":          "internal/\n  gtid/     sets\n  core/\n    async/  one\n",
		"internal/gtid/x.go":       "package gtid\n",
		"internal/gone/x.go":       "package gone\n",
		"internal/core/async/x":    "",
		"internal/core/testdata/x": "",
	})
	got, err := checkMap(".")
	want := "CONTRIBUTING.md: lacks internal/gone in its list of what is where"
	if err != nil || strings.Join(got, "; ") != want {
		t.Errorf("complaints %q, %v; want %q", got, err, want)
	}
}
