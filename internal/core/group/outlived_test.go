package group

import (
	"maps"
	"slices"

	"cnmsql.co/internal/core"
)

// outlived is what is left of members whose data or whose Cluster is gone.
type outlived struct {
	// formers are instances of which a deleted Cluster has left the volumes.
	formers map[string]instance
	// remembered is what a member held that has lost its data since, and that the others of a majority have
	// accepted: by numbers.
	remembered map[int]int
}

// remember what a member of the view holds whose data are about to be lost: it has executed nothing that
// a majority had not accepted, and whoever is left of that has it in memory as long as the view lasts.
func (w *world) remember(in *instance) {
	if !w.isMember(in.name) || len(in.content) == 0 {
		return
	}
	if w.remembered == nil {
		w.remembered = map[int]int{}
	}
	maps.Copy(w.remembered, in.content)
}

// recall gives what is remembered to a majority of the view. Who is recovering has not received what stands
// before it, and learns from the others.
func (w *world) recall(majority []string) {
	for _, name := range majority {
		if in := w.get(name); in.state != core.MemberRecovering {
			in.take(&instance{content: w.remembered})
		}
	}
	w.remembered = nil
}

// adoptVolume gives an instance the volume that a deleted Cluster left of it.
func (w *world) adoptVolume(e core.AdoptVolume) {
	w.cluster.FormerVolumes = slices.DeleteFunc(w.cluster.FormerVolumes, func(v core.FormerVolume) bool {
		return v.Instance == e.Instance && v.UID == e.UID
	})
	was := w.formers[e.Instance]
	in := w.make(e.Instance, was.ordinal)
	in.vol, in.data, in.given = core.Volume{Exists: true, UID: e.UID, Bound: true}, core.DataPopulated, true
	in.executed, in.left = was.executed, was.left
}
