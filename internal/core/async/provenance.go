package async

import (
	"fmt"
	"slices"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// mayLack reports whether elections count on what replicas have acknowledged, and the instance may
// have lost some of it. What it holds is a lower bound: who is elected must hold that, too, but
// that it lacks something does not tell that nobody has acknowledged it.
func mayLack(o *core.Observation, r core.Report) bool {
	return r.MayLack && o.Cluster.Durability.CountsOnReplicas(o.Cluster.Status.Promotion)
}

func (d *decision) mayLack(r core.Report) bool { return mayLack(d.Observation, r) }

// missingText tells whom to bring back, so that enough say what they hold, and who is there and may lack
// something. The holder has all, once it has got what it had to have.
func (b ballot) missingText(voters []voter, unknown []string) string {
	var missing, lacking []string
	for _, name := range unknown {
		in := b.o.Instance(name)
		if slices.Contains(b.o.Cluster.Status.Members, name) && !in.SaysEmpty() && !in.IsGone() {
			_, absence := draft.Answering(in)
			missing = append(missing, fmt.Sprintf("%s (%s)", name, absence))
		}
	}
	for _, v := range voters {
		switch {
		case v.stale:
			missing = append(missing, v.in.Name+" (no answer in time)")
		case v.lacks:
			lacking = append(lacking, v.in.Name)
		}
	}
	p := b.o.Cluster.Status.Promotion
	if in := b.o.Instance(p.Instance); p.Instance == b.exclude && in != nil && !in.SaysEmpty() && !in.IsGone() {
		missing = append(missing, p.Instance+" (the primary)")
	}
	said := "Bring back " + strings.Join(missing, " or ")
	switch {
	case len(missing) > 0:
	case len(lacking) > 0:
		said = "There is no other replica to ask"
	default:
		said = "The other replicas are gone or empty"
	}
	if len(lacking) > 0 {
		said += ". " + strings.Join(lacking, ", ") + " " + draft.MayLackText
	}
	return said
}
