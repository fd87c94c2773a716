package plugin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// whatIsLost tells, line by line, what others hold that an instance does not, as far
// as they say so, and of whom it is not known.
func whatIsLost(c *v1alpha1.Cluster, to string, said words) []string {
	mine := said[to].server()
	if mine == nil {
		return []string{fmt.Sprintf("What %s holds is not known (%s), and so is what is lost. The operator refuses "+
			"if it cannot ask it either.", to, cmp.Or(said[to].Problem, "mysqld does not answer"))}
	}
	out := []string{fmt.Sprintf("%s holds %s. What is lost, as far as is known:", to,
		count(int(mine.Holds().Count()), "transaction"))}
	var silent []string
	most, best := gtid.Set{}, ""
	names := slices.Clone(c.Status.InstanceNames)
	for _, name := range slices.Sorted(maps.Keys(said)) {
		if !slices.Contains(names, name) { // the status was set back
			names = append(names, name)
		}
	}
	for _, name := range names {
		theirs := said[name].server()
		switch {
		case name == to:
		case theirs == nil:
			silent = append(silent, name)
			out = append(out, fmt.Sprintf("  %s: NOT KNOWN (%s)", name, cmp.Or(said[name].Problem,
				"mysqld does not answer")))
		default:
			lacks := theirs.Holds().Subtract(mine.Holds())
			out = append(out, "  "+name+": "+ofThese(lacks)+divergedToo(c, name))
			if lacks.Count() > most.Count() && theirs.Holds().Contains(mine.Holds()) &&
				!slices.Contains(c.Status.DivergedInstances, name) {
				most, best = lacks, name
			}
		}
	}
	if r, known := said[to].Report.Get(); known && lostOfServer(c, r) != "" {
		out = append(out, lostOfServer(c, r))
	}
	out = append(out, atLeast(c, to, mine)...)
	out = append(out, promised(c, silent)...)
	if best != "" {
		out = append(out, fmt.Sprintf("%s holds more: with --to %s, %s less would be lost.", best, best,
			count(int(most.Count()), "transaction")))
	}
	return out
}

func ofThese(lacks gtid.Set) string {
	if lacks.IsEmpty() {
		return "nothing"
	}
	return fmt.Sprintf("%s: %s", count(int(lacks.Count()), "transaction"), lacks.Abbreviate(10))
}

func divergedToo(c *v1alpha1.Cluster, name string) string {
	if slices.Contains(c.Status.DivergedInstances, name) {
		return " (it has diverged)"
	}
	return ""
}

// atLeast returns what an instance lacks of what the primary of this epoch must have held to take
// writes at all; nil when it lacks nothing of that, or is that primary.
func atLeast(c *v1alpha1.Cluster, to string, mine *core.Server) []string {
	p := c.Status.Promotion
	if p == nil || p.Instance == to {
		return nil
	}
	had, err := gtid.Parse(p.RequiredGTID)
	if lacks := had.Subtract(mine.Holds()); err == nil && !lacks.IsEmpty() {
		return []string{fmt.Sprintf("%s lacks even what %s held when it became primary: %s", to,
			p.Instance, ofThese(lacks))}
	}
	return nil
}

// promised tells what durability says about the instances that are silent.
func promised(c *v1alpha1.Cluster, silent []string) []string {
	p := c.Status.Promotion
	if p == nil || len(silent) == 0 {
		return nil
	}
	all := strings.Join(silent, ", ")
	if p.LosslessSince > 0 {
		return []string{fmt.Sprintf("Under quorum each acknowledged write is on %s besides %s. What only %s may hold "+
			"is not known.", count(int(p.RequiredAcks), "replica"), p.Instance, all)}
	}
	return []string{fmt.Sprintf(
		"Acknowledged writes that only %s may hold are lost for the cluster; their volumes are kept.", all)}
}
