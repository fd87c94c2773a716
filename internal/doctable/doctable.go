// Package doctable holds tables of the documents against the tables of the code that they show.
// It is for tests, and knows nothing of what stands in a table.
package doctable

import (
	"flag"
	"os"
	"strings"
	"testing"
)

// Table is one of a document, between two comments that have its name.
type Table struct {
	Name string
	Head []string
	Rows [][]string
}

// Check fails where a document does not show the tables as they are. With the flag -rewrite of
// the stories it writes them there.
func Check(t *testing.T, file string, tables ...Table) {
	t.Helper()
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	after := string(before)
	for _, table := range tables {
		begin, end := "<!-- "+table.Name+": made by go test -rewrite -->\n", "<!-- /"+table.Name+" -->"
		head, rest, found := strings.Cut(after, begin)
		_, tail, ends := strings.Cut(rest, end)
		if !found || !ends {
			t.Fatalf("%s has no room for the table %q: write %q and %q where it is to stand",
				file, table.Name, begin, end)
		}
		after = head + begin + "\n" + table.String() + "\n" + end + tail
	}
	switch {
	case after == string(before):
	case flag.Lookup("rewrite").Value.String() == "true":
		if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s does not show the tables of the code as they are: go test this package -run %s -rewrite",
			file, t.Name())
	}
}

// String is the table in Markdown.
func (table Table) String() string {
	line := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
	out := line(table.Head) + strings.Repeat("|---", len(table.Head)) + "|\n"
	for _, row := range table.Rows {
		out += line(row)
	}
	return out
}

// Code writes names as code, one beside another.
func Code[T ~string](names ...T) string {
	var out []string
	for _, name := range names {
		if name != "" {
			out = append(out, "`"+string(name)+"`")
		}
	}
	return strings.Join(out, ", ")
}
