package async

import (
	"strings"

	"cnmsql.co/internal/core"
)

// mayLack reports whether elections count on what replicas have acknowledged, and the instance may
// have lost some of it. What it holds is a lower bound: who is elected must hold that, too, but
// that it lacks something does not tell that nobody has acknowledged it.
func mayLack(o *core.Observation, r core.Report) bool {
	return r.MayLack && o.Cluster.Durability.CountsOnReplicas(o.Cluster.Status.Promotion)
}

func (d *decision) mayLack(r core.Report) bool { return mayLack(d.Observation, r) }

const mayLackText = "may lack what it acknowledged: what it had received was not flushed before its node, " +
	"its mount or its volume failed"

// lackingText names those of the voters that do not count, and why.
func lackingText(voters []voter) string {
	var lacking, late []string
	for _, v := range voters {
		switch {
		case v.stale:
			late = append(late, v.in.Name)
		case v.lacks:
			lacking = append(lacking, v.in.Name)
		}
	}
	said := ""
	if len(late) > 0 {
		said += " (" + strings.Join(late, ", ") + " did not answer in time)"
	}
	if len(lacking) > 0 {
		said += " (" + strings.Join(lacking, ", ") + " " + mayLackText + ")"
	}
	return said
}

// lackingAmong names one of the instances that may lack what it acknowledged; "" when none does.
func lackingAmong(all []voter) string {
	for _, v := range all {
		if v.lacks {
			return v.in.Name
		}
	}
	return ""
}
