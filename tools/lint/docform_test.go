package main

import "testing"

func TestFindsDocCommentsThatBeginWithTheNameAndAColon(t *testing.T) {
	const core, cmd = "internal/core/x.go", "cmd/x/x.go"
	doc := func(says, of string) string { return "// " + says + " that.\n" + of }
	for name, c := range map[string]struct{ path, text, finds string }{
		"a doc with a colon":         {cmd, doc("isOver:", "func isOver() bool { return x }"), "doc-form cmd/x"},
		"a method's doc":             {core, doc("isOver:", "func (d *d) isOver() {}"), "doc-form internal/core"},
		"a doc in a test":            {"cmd/x_test.go", doc("mustDo:", "func mustDo() {}"), "test-doc-form cmd"},
		"a type's doc":               {cmd, doc("order:", "type order int"), "doc-form cmd/x"},
		"a doc of one of many types": {cmd, "type (\n" + doc("order:", "order int") + "\n)", "doc-form cmd/x"},
		"a constant's doc":           {cmd, "const (\n" + doc("most:", "most = 1") + "\n)", "doc-form cmd/x"},
		"a variable's doc":           {cmd, doc("errOver:", "var errOver = f()"), "doc-form cmd/x"},
		"a doc with a verb":          {cmd, doc("isOver reports whether:", "func isOver() {}"), ""},
		"a doc of another name":      {cmd, doc("Note:", "func isOver() {}"), ""},
		"a doc of a longer name":     {cmd, doc("isOverdue:", "func isOver() {}"), ""},
		"a comment in a function":    {cmd, "func isOver() {\n" + doc("isOver:", "x()") + "\n}", ""},
		"no doc at all":              {cmd, "func isOver() {}\ntype order int\nvar x int", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := foundIn(t, c.path, c.text); got != c.finds {
				t.Errorf("found %q, want %q", got, c.finds)
			}
		})
	}
}
