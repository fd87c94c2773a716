package sim

import (
	"slices"

	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

func mutantsOfArchive() []mutant {
	return []mutant{
		{name: "what is not executed is archived", seed: 23, mutation: mutation{ShipsUnexecuted: true}},
		{name: "a new branch begins at its start", seed: 3, mutation: mutation{HeldIsStart: true}},
		{name: "who was replaced ships into its successor's branch", seed: 51, mutation: mutation{ShipsOn: true}},
		{name: "what a listing does not tell is not in the store", seed: 51,
			mutation: mutation{BelievesListings: true}},
		{name: "binary logs that are not archived are purged", seed: 27, mutation: mutation{PurgeUnarchived: true}},
		{name: "a restore does not look at what later branches lost", seed: 63,
			mutation: mutation{Archived: func(a *archive.Archive) {
				var all gtid.Set
				for _, p := range a.Parts {
					all = all.Union(p.Before).Union(p.GTIDs)
				}
				for i := range a.Branches {
					a.Branches[i].Start = a.Branches[i].Start.Union(all)
				}
			}}},
		{name: "a gap is not told", seed: 459, mutation: mutation{Archived: func(a *archive.Archive) {
			for i := range a.Parts {
				a.Parts[i].Before = gtid.Set{}
			}
			for i := range a.Branches {
				a.Branches[i].Held = gtid.Set{}
			}
		}}},
	}
}

func mutantsOfRetention() []mutant {
	return []mutant{
		{name: "retention goes by its Job's clock alone", seed: 235,
			mutation: mutation{Holdings: func(h *archive.Holdings) { h.Store = h.Local }}},
		{name: "retention goes by half the window", seed: 171,
			mutation: mutation{Holdings: func(h *archive.Holdings) { h.Window /= 2 }}},
		{name: "the backup that the window begins with goes, too", seed: 7,
			mutation: mutation{Expired: func(_ *archive.Holdings, e *archive.Expiry) {
				if e.Anchor != "" {
					e.Bases = append(slices.Clone(e.Bases), e.Anchor)
				}
			}}},
		{name: "the last part of a branch goes, too", seed: 131,
			mutation: mutation{Expired: func(_ *archive.Holdings, e *archive.Expiry) {
				e.Parts = slices.Clone(e.Parts)
				for i := range e.Parts {
					e.Parts[i].Last += 2
				}
			}}},
		{name: "a part goes that the oldest backup lacks", seed: 7,
			mutation: mutation{Holdings: func(h *archive.Holdings) {
				h.Bases = slices.Clone(h.Bases)
				for i := range h.Bases {
					h.Bases[i].Begin = h.Bases[i].Begin.Union(h.Bases[len(h.Bases)-1].End).Union(h.Bases[0].End)
				}
			}}},
		{name: "retention does not look at what later branches lost", seed: 13191,
			mutation: mutation{Holdings: func(h *archive.Holdings) {
				var all gtid.Set
				for _, p := range h.Archive.Parts {
					all = all.Union(p.Before).Union(p.GTIDs)
				}
				for _, b := range h.Bases {
					all = all.Union(b.End)
				}
				h.Archive.Branches = slices.Clone(h.Archive.Branches)
				for i := range h.Archive.Branches {
					h.Archive.Branches[i].Start = h.Archive.Branches[i].Start.Union(all)
				}
			}}},
	}
}
