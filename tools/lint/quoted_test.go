package main

import (
	"strings"
	"testing"
)

func TestComplainsOfFiguresThatAreNotThoseOfTheCode(t *testing.T) {
	const source = "package core\nimport \"time\"\nconst (\n\tWait = 2 * time.Second\n" +
		"\tLong = Wait + 500*time.Millisecond\n\tParts = 1 << 10\n\tShare = Parts / 3\n\tName = named\n)\n"
	const agent = "package agent\nimport \"cnmsql.co/internal/core\"\nconst Again = 30*core.Wait + 60*core.Wait\n"
	for name, w := range map[string]struct{ doc, says string }{
		"a duration":     {"after 2 s<!-- core.Wait --> it ends", ""},
		"a part of one":  {"after 2.5 s<!-- core.Long -->", ""},
		"of two":         {"after 4.5 s<!-- core.Wait + core.Long -->", ""},
		"of a package":   {"3 min<!-- core/agent.Again -->", ""},
		"a count":        {"1,024<!-- core.Parts --> parts of 1 KiB<!-- core.Parts -->, 341<!-- core.Share -->", ""},
		"another figure": {"after 3 s<!-- core.Wait -->", "docs/a.md: says 3 s, and core.Wait is 2 s"},
		"another unit":   {"2 min<!-- core.Wait -->", "docs/a.md: says 2 min, and core.Wait is 0.0333333 min"},
		"no figure":      {"soon<!-- core.Wait -->", "docs/a.md: no figure stands before <!-- core.Wait -->"},
		"no constant": {"1 s<!-- core.Gone -->",
			"docs/a.md: there is no constant Gone in internal/core"},
		"no number": {"1 s<!-- core.Name -->", "docs/a.md: there is no constant named in internal/core"},
		"two in a line, the second is wrong": {"2 s<!-- core.Wait -->, then 1 s<!-- core.Long -->",
			"docs/a.md: says 1 s, and core.Long is 2.5 s"},
	} {
		t.Run(name, func(t *testing.T) {
			inTree(t, map[string]string{"internal/core/a.go": source, "internal/core/agent/a.go": agent,
				"docs/a.md": w.doc})
			got, err := checkQuoted(".")
			if err != nil || strings.Join(got, "; ") != w.says {
				t.Errorf("complaints %q, %v; want %q", got, err, w.says)
			}
		})
	}
}

func TestDocumentsWithoutAnyConstantAreAnError(t *testing.T) {
	inTree(t, map[string]string{"docs/a.md": "after 2 s"})
	if got, err := checkQuoted("."); err == nil {
		t.Errorf("complaints %q and no error", got)
	}
}
