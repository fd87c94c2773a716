package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cnmsql.co/internal/core"
)

var strange = regexp.MustCompile("[^a-z0-9 _-]")

// section is what stands below a heading of a page, up to the next one that is not below it; the page if
// no heading is named.
func section(page, anchor string) string {
	if anchor == "" {
		return page
	}
	var b strings.Builder
	level := 0
	for line := range strings.Lines(page) {
		title := strings.TrimLeft(line, "#")
		depth := len(line) - len(title)
		switch is := strange.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""); {
		case depth > 0 && level == 0 && strings.ReplaceAll(is, " ", "-") == anchor:
			level = depth
		case depth > 0 && depth <= level:
			return b.String()
		}
		if level > 0 {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestPagesNameWhatLeadsThere holds the pages to what leads whoever is on call there: of what is wrong with a
// primary, or blocks a Cluster, of events, and of an instance whose trouble has a section of its own.
func TestPagesNameWhatLeadsThere(t *testing.T) {
	kinds := []core.Kind{core.KindDiagnosis, core.KindRefusal, core.KindProblem, core.KindEvent}
	for _, e := range core.Catalogue() {
		page, anchor, _ := strings.Cut(e.See, "#")
		isTrouble := e.Kind == core.KindInstance && page == "troubleshooting.md" && anchor != ""
		if !slices.Contains(kinds, e.Kind) && !isTrouble {
			continue
		}
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`\b` + e.Name + `\b`).MatchString(section(string(text), anchor)) {
			t.Errorf("docs/%s says nothing of the %s %s", e.See, e.Kind, e.Name)
		}
	}
}
