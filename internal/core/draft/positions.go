package draft

import (
	"slices"

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
