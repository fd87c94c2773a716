package main

import "testing"

func TestComplainsOfAFactThatIsTakenForTheZeroValue(t *testing.T) {
	const core, says = "internal/core/x.go", "takes an unknown fact for the zero value"
	does := func(s string) string { return "package p\n\nfunc f() { " + s + " }\n" }
	for name, c := range map[string]struct{ path, text, says string }{
		"a fact that is taken":             {core, does("r, _ := in.Report.Get()"), says},
		"one that is taken later":          {core, does("r, _ = in.Report.Get()"), says},
		"one that is taken in a condition": {core, does("if r, _ := in.Report.Get(); r.Ready { }"), says},
		"one that a shell takes":           {"internal/plugin/x.go", does("r, _ := in.Report.Get()"), says},
		"a fact that is looked at":         {core, does("r, known := in.Report.Get()"), ""},
		"what is no fact":                  {core, does("r, _ := c.Get(name)"), ""},
		"a fact that a test takes":         {"internal/core/x_test.go", does("r, _ := in.Report.Get()"), ""},
		"a fact that a tool takes":         {"tools/x/x.go", does("r, _ := in.Report.Get()"), ""},
	} {
		t.Run(name, func(t *testing.T) { holdsTo(t, c.path, c.text, c.says) })
	}
}
