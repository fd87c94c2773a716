package plugin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cnmsql.co/internal/whatif"
)

func (group) outcome(a whatif.Answer) string {
	switch {
	case a.Outcome == whatif.Promoted:
		return fmt.Sprintf("the group makes %s primary after %s, in the place of %s", a.Promoted,
			about(a.Seconds), a.Primary)
	case a.Outcome == whatif.Continues:
		return fmt.Sprintf("%s stays the primary and takes writes", a.Promoted)
	case a.Outcome == whatif.Undecided:
		return "the simulated time ended before a decision"
	case !slices.Contains(a.Lost, a.Primary):
		return fmt.Sprintf("%s stays the primary, but WRITES HANG: the group has no quorum%s", a.Primary,
			refusalText(a.Refusal))
	default:
		return "NOBODY takes writes: the group has no quorum" + refusalText(a.Refusal)
	}
}

// group tells who is left, and what would have to be done.
func (p page) group(a whatif.Answer) {
	g := a.Group
	if g == nil {
		return
	}
	holds := "the quorum holds"
	if !g.Quorum {
		holds = "THE QUORUM IS LOST"
	}
	p.line("Online", "%s, %d of %d; a majority is %d: %s", cmp.Or(strings.Join(g.Online, ", "), "nobody"),
		len(g.Online), g.Size, g.Majority, holds)
	if g.Recovery == nil {
		return
	}
	label := "To do"
	for _, line := range remedies(a) {
		p.line(label, "%s", line)
		label = ""
	}
}

func remedies(a whatif.Answer) []string {
	back := "bring " + strings.Join(a.Lost, ", ") + " back"
	if a.How == whatif.NodeLost {
		back += ": instances whose mysqld kept running are members again immediately; restarted ones cannot join a " +
			"group without a quorum"
	} else {
		back += ": restarted, they cannot join a group without a quorum, but what they hold is known then"
	}
	const recover = "or, at your request (kubectl cnmsql group recover): "
	switch r := a.Group.Recovery; {
	case r.Refusal != "":
		return []string{back, recover + "REFUSED as it is then (" + string(r.Refusal) + "): " + r.Because}
	case r.Because != "":
		return []string{back, recover + r.Because}
	case r.Anew:
		how := recover[len("or, "):] + r.Lead + ", which holds all that any instance holds, reboots the group, and " +
			"the others join"
		if r.Gap != "" {
			how += "; but " + r.Gap
		}
		return []string{how}
	default:
		how := recover
		if r.Gap != "" {
			how = "or, at your request (kubectl cnmsql group recover --accept-data-loss): "
		}
		return []string{back, fmt.Sprintf("%s%s; excluded: %s, and what only they hold is lost", how, goesOn(*r),
			strings.Join(r.LeftOut, ", "))}
	}
}
