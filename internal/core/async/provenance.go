package async

import (
	"strings"

	"cnmsql.co/internal/core"
)

// mayLack reports whether elections count on what replicas have acknowledged, and the instance may
// have lost some of it. What it holds is a lower bound: who is elected must hold that, too, but
// that it lacks something does not tell that nobody has acknowledged it.
func mayLack(o *core.Observation, r core.Report) bool {
	return r.MayLack && o.Cluster.Durability.Mode.IsOnReplicas()
}

func (d *decision) mayLack(r core.Report) bool { return mayLack(d.Observation, r) }

const mayLackText = "may lack what it acknowledged: what it had received was not flushed before its node, " +
	"its mount or its volume failed"

// lackingText names those of the voters that do not count, and why.
func lackingText(voters []voter) string {
	var names []string
	for _, v := range voters {
		if v.lacks {
			names = append(names, v.in.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + " " + mayLackText + ")"
}

// lackingAmong names one of the instances that may lack what it acknowledged; "" when none does.
func lackingAmong(o *core.Observation, all []*core.Instance) string {
	for _, in := range all {
		if r, known := in.Report.Get(); known && mayLack(o, r) {
			return in.Name
		}
	}
	return ""
}
