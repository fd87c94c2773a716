package draft

import (
	"slices"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Dominating is the first of those whose position holds every other's; nil if nobody
// does, or somebody's position is not known.
func Dominating(all []*core.Instance) *core.Instance {
	if slices.ContainsFunc(all, func(in *core.Instance) bool { return !in.Report.Is(tellsPosition) }) {
		return nil
	}
	union := Held(all)
	for _, in := range all {
		if in.Report.Is(func(r core.Report) bool { return r.Server.Holds().Contains(union) }) {
			return in
		}
	}
	return nil
}

// Held is what they hold together, as far as it is known.
func Held(all []*core.Instance) (out gtid.Set) {
	for _, in := range all {
		if r, known := in.Report.Get(); known && tellsPosition(r) {
			out = out.Union(r.Server.Holds())
		}
	}
	return out
}

func tellsPosition(r core.Report) bool { return r.Server != nil }

// MayLackText is said of an instance that may lack what it acknowledged.
const MayLackText = "may lack transactions that it acknowledged: they were not flushed before its node, its mount or " +
	"its volume failed"

// Holding is what an instance holds.
type Holding struct {
	Name  string
	Holds gtid.Set
}

// OwnText tells what each holds that not all others hold.
func OwnText(all []Holding) string {
	var holds []string
	for _, h := range all {
		own := gtid.Set{}
		for _, other := range all {
			own = own.Union(h.Holds.Subtract(other.Holds))
		}
		if !own.IsEmpty() {
			holds = append(holds, h.Name+" holds "+own.Abbreviate(4))
		}
	}
	return strings.Join(holds, "; ") + " (other instances lack these)"
}
