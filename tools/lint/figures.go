package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A claim is what a document lists and the code defines. Each name that the code has must stand in
// the document, and the number that the document gives must be theirs.
type claim struct {
	what string
	// names finds the names in the files of source, which is a glob. It has one group.
	source string
	names  *regexp.Regexp
	// section, if set, cuts out of each source where the names are looked for.
	section *regexp.Regexp
	doc     string
	// written is how the document writes a name: a format with one %s.
	written string
	// counted, if set, finds the number in the document. It has one group, a word of numerals.
	counted *regexp.Regexp
}

// numerals are the numbers that documents write as words.
var numerals = []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
	"eleven", "twelve", "thirteen", "fourteen", "fifteen"}

var claims = []claim{
	{
		what: "admission policy", source: "dist/install.yaml",
		names: regexp.MustCompile(`(?m)^kind: ValidatingAdmissionPolicy\nmetadata:\n  name: (\S+)$`),
		doc:   "docs/security.md", written: "- `%s`: ",
	},
	{
		what: "admission policy", source: "dist/install.yaml",
		names: regexp.MustCompile(`(?m)^kind: ValidatingAdmissionPolicy\nmetadata:\n  name: (\S+)$`),
		doc:   "docs/architecture.md", counted: regexp.MustCompile(`by (\S+) \[?ValidatingAdmissionPolicies`),
	},
	{
		what: "order", source: "internal/control/order.go",
		names: regexp.MustCompile(`(?m)^func \(\w+\) Verb\(\) Verb +\{ return "([^"]+)"`),
		doc:   "docs/architecture.md", written: "`%s`", counted: regexp.MustCompile(`one of (\S+) orders`),
	},
	{
		what: "proof", source: "internal/core/reasons.go",
		names: regexp.MustCompile(`(?m)^\tProof\w+ Proof = "([^"]+)"`),
		doc:   "docs/architecture.md", written: "| `%s` |",
	},
	{
		what: "field of the status", source: "api/v1alpha1/status_types.go",
		section: regexp.MustCompile(`(?ms)^type ClusterStatus struct \{.*?^\}`),
		names:   regexp.MustCompile(`json:"([^,"]+)`),
		doc:     "docs/status.md", written: "`%s`",
	},
	{
		what: "fault of the soak", source: "test/soak/faults.go",
		names: regexp.MustCompile(`(?m)^\t\{"([^"]+)", \d+, `),
		doc:   "docs/soak.md", written: "- %s\n",
	},
	{
		what: "generated file", source: "Makefile",
		section: regexp.MustCompile(`(?m)^GENERATED := .*$`),
		names:   regexp.MustCompile(` ([a-zA-Z][^\s:]+)`),
		doc:     "CONTRIBUTING.md", written: "`%s`",
	},
}

// checkFigures holds each list and number that a document gives against where it comes from.
func checkFigures(root string) (complaints []string, err error) {
	for _, c := range claims {
		names, err := c.defined(root)
		if err != nil {
			return nil, err
		}
		doc, err := os.ReadFile(filepath.Join(root, c.doc))
		if err != nil {
			return nil, err
		}
		complaints = append(complaints, c.judge(names, string(doc))...)
	}
	return complaints, nil
}

// defined returns the names that the source defines. A source without any is an error, for then the
// expression has gone out of date and the check finds nothing any more.
func (c claim) defined(root string) (names []string, err error) {
	text, err := os.ReadFile(filepath.Join(root, c.source))
	if err != nil {
		return nil, err
	}
	in := string(text)
	if c.section != nil {
		in = c.section.FindString(in)
	}
	for _, m := range c.names.FindAllStringSubmatch(in, -1) {
		names = append(names, m[1])
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: found no %s: see claims in tools/lint/figures.go", c.source, c.what)
	}
	return names, nil
}

func (c claim) judge(names []string, doc string) (complaints []string) {
	for _, name := range names {
		if c.written != "" && !strings.Contains(doc, fmt.Sprintf(c.written, name)) {
			complaints = append(complaints, fmt.Sprintf("%s: lacks the %s %s of %s", c.doc, c.what, name, c.source))
		}
	}
	if c.counted == nil {
		return complaints
	}
	want := fmt.Sprint(len(names))
	if len(names) < len(numerals) {
		want = numerals[len(names)]
	}
	switch m := c.counted.FindStringSubmatch(doc); {
	case m == nil:
		complaints = append(complaints, fmt.Sprintf("%s: tells no number where %q should", c.doc, c.counted))
	case m[1] != want:
		complaints = append(complaints, fmt.Sprintf("%s: %q, but %s has %s", c.doc, m[0], c.source, want))
	}
	return complaints
}

// mapped are the directories whose packages the map in CONTRIBUTING.md lists.
var mapped = []string{"internal", "internal/core", "test", "tools"}

// checkMap complains of packages that CONTRIBUTING.md does not list.
func checkMap(root string) (complaints []string, err error) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`[a-z0-9/]+/`).FindAllString(string(text), -1) {
		listed[filepath.Base(m)] = true
	}
	for _, dir := range mapped {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() && e.Name() != "testdata" && !listed[e.Name()] {
				name := dir + "/" + e.Name()
				complaints = append(complaints, "CONTRIBUTING.md: lacks "+name+" in its list of what is where")
			}
		}
	}
	return complaints, nil
}
