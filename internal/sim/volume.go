package sim

import (
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// volume is what lies on a disk: the manager's memory and the data directory. It
// outlives Pods, and loses what was not synced when its node loses power.
type volume struct {
	w        *world
	instance string
	uid      string
	// node that it lies on, or is attached to.
	node string
	// holder has the lock on it; only managers of one node compete for it.
	holder *manager
	record volumeRecord
	stage  stage
	db     *database
	// full: nothing can be written. Then mysqld ends, or, if it waits, goes on once there is space.
	full, waits bool
	// stalled: nothing is read or written, and a server does not get to answer.
	stalled bool
	gone    bool
	// removed: the operator deleted it, not a human or an accident.
	removed bool
	// mounts of its filesystem. failed: it could not write back something since mysqld was
	// started last.
	mounts   int
	failed   bool
	detached bool // by force: whoever still has it open gets errors
}

// stage is how far the making of data has come.
type stage int

const (
	stageNone stage = iota
	stageInitializing
	stageScratch
	stagePopulated
)

// volumeRecord is what a manager keeps on its volume.
type volumeRecord struct {
	adopted          bool
	noWritesBelow    int64
	noReceivingBelow int64
	wasPrimaryEpoch  int64
	viewEpoch        int64
	acks             int
	acksEpoch        int64
	acksOrder        int64
	tailEpoch        int64
	tailBase         gtid.Set
	cached           agent.Cached
}

// promised is what is recorded of acknowledgements.
func (r *volumeRecord) promised() agent.Promised {
	return agent.Promised{Acks: r.acks, Epoch: r.acksEpoch, Order: r.acksOrder, TailEpoch: r.tailEpoch}
}

func (r *volumeRecord) setPromised(p agent.Promised) {
	r.acks, r.acksEpoch, r.acksOrder, r.tailEpoch = p.Acks, p.Epoch, p.Order, p.TailEpoch
}

func newVolume(w *world, instance, uid string) *volume {
	v := &volume{w: w, instance: instance, uid: uid}
	w.truth.dbs = append(w.truth.dbs, v)
	return v
}

// state tells what the data directory holds.
func (v *volume) state() core.DataState {
	switch v.stage {
	case stagePopulated:
		return core.DataPopulated
	case stageScratch:
		return core.DataScratch
	}
	return core.DataEmpty
}

// destroy deletes the volume's data with its claim. A mysqld that has the files open goes on until
// it ends.
func (v *volume) destroy() {
	v.gone = true
	if v.db != nil && v.stage == stagePopulated {
		v.w.truth.destroyed(v)
	}
}

// attach makes the volume usable on a node; false while another has it.
func (v *volume) attach(node string) bool {
	if v.node == "" || v.node == node {
		v.node = node
		return true
	}
	if !v.w.conf.network || v.inUse() {
		return false
	}
	v.node = node
	v.mounts++
	v.loseCache() // it may have been taken away by force
	return true
}

// inUse reports whether a container that has the volume mounted was not seen to end, nor has its
// node been declared dead.
func (v *volume) inUse() bool {
	for _, n := range v.w.nodes {
		for _, c := range n.containers {
			if c.volume == v {
				o := v.w.api.node(n.name)
				return o != nil && !o.outOfService
			}
		}
	}
	return false
}
