package sim

import (
	"fmt"
	"regexp"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// story is what happened, in words; nothing is written while it is off.
type story struct {
	on    bool
	lines []string
}

func (w *world) tell(format string, args ...any) {
	if !w.story.on {
		return
	}
	line := fmt.Sprintf("%9.3fs  %s", w.now.Seconds(), shorten(fmt.Sprintf(format, args...)))
	w.story.lines = append(w.story.lines, line)
}

var longUUID = regexp.MustCompile(`([0-9a-f]{8})-0000-0000-0000-([0-9a-f]{12})`)

// shorten makes UUIDs readable: s7@2 is the server that was made seventh, of the
// second instance.
func shorten(text string) string {
	text = longUUID.ReplaceAllStringFunc(text, func(u string) string {
		var n, ordinal int
		_, _ = fmt.Sscanf(u, "%08x-0000-0000-0000-%012x", &n, &ordinal)
		return fmt.Sprintf("s%d@%d", n, ordinal)
	})
	return strings.ReplaceAll(text, ",\n", ",")
}

// tellPlan says what is new in a plan.
func (w *world) tellPlan(op *operator, o *core.Observation, plan *core.Plan) {
	was, is := &o.Cluster.Status, &plan.Status
	if was.Diagnosis != is.Diagnosis || was.Phase != is.Phase {
		w.tell("%s: %s, %s: %s", op.id, is.Phase, is.Diagnosis, is.Reason)
	}
	if op2 := is.Operation; op2 != nil && (was.Operation == nil || was.Operation.Step != op2.Step) {
		w.tell("%s: %s %s %s", op.id, op2.Kind, op2.Step, op2.To)
	}
	for _, e := range plan.Events {
		w.tell("%s: event %s: %s", op.id, e.Reason, e.Message)
	}
	for _, e := range plan.Effects {
		if _, ok := e.(core.Refresh); !ok {
			w.tell("%s: - %s", op.id, e)
		}
	}
}

func (m *manager) tellAction(a agent.Action) {
	switch a.(type) {
	case agent.WaitApplied, agent.AskPrimary, agent.AskHeld:
	default:
		m.tell("%s", a)
	}
}
