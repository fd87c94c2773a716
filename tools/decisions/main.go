// Command decisions writes docs/decisions.md: an index of the stories in which the
// decisions of internal/core are told and tested. A story begins with a comment.
package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// story is one comment of a script, and the line on which it begins.
type story struct {
	text string
	line int
}

func main() {
	if err := write("docs/decisions.md"); err != nil {
		fmt.Fprintln(os.Stderr, "decisions:", err)
		os.Exit(1)
	}
}

func write(file string) error {
	var b strings.Builder
	total := 0
	for _, part := range []struct{ title, dir string }{
		{"What the operator decides (primary and replicas)", "internal/core/async/testdata"},
		{"What the operator decides (Group Replication)", "internal/core/group/testdata"},
		{"What an instance decides about its own mysqld", "internal/core/agent/testdata"},
	} {
		files, err := filepath.Glob(filepath.Join(part.dir, "*.txt"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("no scripts in %s: %w", part.dir, err)
		}
		fmt.Fprintf(&b, "\n## %s\n", part.title)
		for _, f := range files {
			stories, err := read(f)
			if err != nil {
				return err
			}
			total += len(stories)
			fmt.Fprintf(&b, "\n### [%s](../%s)\n\n", strings.TrimSuffix(filepath.Base(f), ".txt"), f)
			for _, s := range stories {
				fmt.Fprintf(&b, "- [%s](../%s#L%d)\n", s.text, f, s.line)
			}
		}
	}
	head := fmt.Sprintf("# Decisions\n\nEvery decision that could lose data is made by code without I/O, and told as "+
		"a story that is also its test: "+
		"what is known, and what is done about it. "+
		"These are the %d stories (made by `make generate`; `go test ./internal/core/...` runs them).\n", total)
	return os.WriteFile(file, []byte(head+b.String()), 0o644)
}

// read gathers the comments of a script: consecutive lines are one story.
func read(file string) ([]story, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var out []story
	open := false
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, isComment := strings.CutPrefix(lines.Text(), "# ")
		switch {
		case isComment && open:
			out[len(out)-1].text += " " + text
		case isComment:
			out = append(out, story{text, n})
		}
		open = isComment
	}
	return out, lines.Err()
}
