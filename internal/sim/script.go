package sim

import (
	"fmt"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observed"
)

// decisions are those of the operator's that a violation may rest on: the one that
// granted what somebody relies on, and the last one. They are kept while a story is
// told.
type decisions struct {
	granted, last *core.Observation
}

// note keeps what was seen when a plan was made.
func (w *world) note(o *core.Observation, plan *core.Plan) {
	if !w.story.on {
		return
	}
	w.seen.last = o
	before, after := o.Cluster.Status.Promotion, plan.Status.Promotion
	if after != nil && (before == nil || before.Epoch != after.Epoch || before.Instance != after.Instance) {
		w.seen.granted = o
	}
}

// script tells a violation in the language of the stories of core/async, with the
// answers left out: go test -rewrite fills them in. What is wrong may lie in another
// layer than the operator's decisions; then they are right.
func (w *world) script(v *Violation, faults []Fault) string {
	if !w.story.on {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", shorten(v.Error()))
	for _, f := range faults {
		fmt.Fprintf(&b, "# %8.3fs %s\n", f.At.Seconds(), f.Kind)
	}
	tell := func(what string, o *core.Observation) {
		fmt.Fprintf(&b, "\n# %s\nobserved\n%s----\n\ndecide\n----\n", what, observed.Write(o))
	}
	if w.seen.granted != nil {
		tell("What was seen when a promotion was granted last.", w.seen.granted)
	}
	if w.seen.last != nil && w.seen.last != w.seen.granted {
		tell("What was seen last.", w.seen.last)
	}
	return b.String()
}
