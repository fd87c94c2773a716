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
	{"a number that was cut off is given again", regexp.MustCompile(`gives the number .* to another transaction`)},
	{"a released lease leaves no trace of its epoch", regexp.MustCompile(`becomes writable in epoch \d+, after .* was in epoch`)},
	{"a promoted replica that lost its relay logs is waited for", regexp.MustCompile(`cannot be promoted: it lacks`)},
	{"a lease seized for nobody keeps the primary from coming back", regexp.MustCompile(`the lease was taken away`)},
	{"a fenced primary without a Pod is neither made anew nor replaced", regexp.MustCompile(`is fenced; writes are stopped until it is unfenced`)},
	{"a Pod elsewhere that answers keeps the lease from being waited for", regexp.MustCompile(`the Pod that answers is not the one that took writes|waiting until a replica holds all that .* holds, which is being stopped`)},
	{"a promoted instance waits for what only others hold by now", regexp.MustCompile(`Running Promoting: receives `)},
	{"an empty surplus instance keeps the next from being removed", regexp.MustCompile(`is to be removed, but \d of \d replicas hold all that it holds`)},
	{"an ended Pod stands for another of its node", regexp.MustCompile(`reported the containers of Pod .* terminated before it was deleted\), and .* still takes writes`)},
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
