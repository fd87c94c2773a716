package sim

import "regexp"

// finding is a mistake in the code under test that the simulation has found and
// that nobody has mended yet. Its violations are counted apart, so that another
// mistake is seen. Whoever mends it takes it off this list.
type finding struct {
	name string
	what *regexp.Regexp
}

var findings = []finding{
	{"a promoted instance waits for what only others hold by now", regexp.MustCompile(`Running Promoting: receives `)},
}

// Known names the finding that a violation belongs to; "" for none.
func (v *Violation) Known() string {
	for _, f := range findings {
		if f.what.MatchString(v.What) {
			return f.name
		}
	}
	return ""
}
