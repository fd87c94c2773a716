package benchfile

import (
	"os"
	"path/filepath"
	"testing"
)

// kept is the file that the benchmarks keep.
const kept = "../../docs/benchmarks.json"

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func content(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAPartIsReplacedWhereItStandsAndTheRestStays(t *testing.T) {
	file := write(t, `{"rows":[{"fault":"a < b","median":0.10}],"old":{"b":1,"a":2},"gone":[1]}`)
	var none []int
	if err := Save(file, Part{"old", []int{3}}, Part{"gone", none}, Part{"never", nil}, Part{"new", "x"}); err != nil {
		t.Fatal(err)
	}
	want := "{\n \"rows\": [\n  {\n   \"fault\": \"a < b\",\n   \"median\": 0.10\n  }\n ],\n" +
		" \"old\": [\n  3\n ],\n \"new\": \"x\"\n}\n"
	if got := content(t, file); got != want {
		t.Errorf("it has\n%s", got)
	}
}

func TestSavingNothingLeavesTheKeptFileAsItIs(t *testing.T) {
	before := content(t, kept)
	file := write(t, before)
	if err := Save(file); err != nil {
		t.Fatal(err)
	}
	if after := content(t, file); after != before {
		t.Errorf("of %d bytes it has made %d others", len(before), len(after))
	}
}

func TestAFileIsBegunAndRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "none")
	var into struct{ A []int }
	if err := Load(file, &into); err != nil || into.A != nil {
		t.Errorf("%v, %v", into, err)
	}
	if err := Save(file, Part{"a", []int{1, 2}}); err != nil {
		t.Fatal(err)
	}
	if err := Load(file, &into); err != nil || len(into.A) != 2 {
		t.Errorf("%v, %v", into, err)
	}
}

func TestAFileThatIsNoObjectIsLeftAlone(t *testing.T) {
	for _, text := range []string{"{", "[1]", "{} {}", ""} {
		file := write(t, text)
		if err := Save(file, Part{"a", 1}); err == nil || content(t, file) != text {
			t.Errorf("%q became %q, %v", text, content(t, file), err)
		}
	}
}

func TestWhatIsMadeIsReplacedInItsPlaceOnly(t *testing.T) {
	p := Place{"<!-- a -->", "<!-- b -->"}
	page := write(t, "before\n<!-- a -->\nold\n<!-- b -->\nafter\n")
	for range 2 { // what is made replaces what was made before
		if err := p.Write(page, "new\n"); err != nil {
			t.Fatal(err)
		}
	}
	if got := content(t, page); got != "before\n<!-- a -->\nnew\n<!-- b -->\nafter\n" {
		t.Errorf("it has\n%s", got)
	}
	for _, text := range []string{"", "<!-- a -->\n", "<!-- b -->\n<!-- a -->\n"} {
		if page := write(t, text); p.Write(page, "new\n") == nil || content(t, page) != text {
			t.Errorf("%q has no place, and no error, or became %q", text, content(t, page))
		}
	}
	if p.Write(filepath.Join(t.TempDir(), "none"), "") == nil {
		t.Error("no page, and no error")
	}
}
