package sim

import (
	"math/rand/v2"
	"time"

	"cnmsql.co/internal/core"
)

// copiedWithin is the bound of I7 when all replicas have lost their data: copies take ten
// seconds here, a recovery half a minute, and something else happens in between.
const copiedWithin = 5 * time.Minute

// starve takes the data of all replicas of a healthy cluster under quorum, while clients
// write. Commits wait for them, and a copy of the data for the commits: the primary has to
// be closed for it, and takes writes again without a human's help.
func (w *world) starve(seed uint64) {
	c := w.api.cluster()
	p := c.status.Promotion
	if !c.spec.durability.Mode.WaitsForEver() || len(c.status.InstanceNames) < 2 || p.RequiredAcks == 0 ||
		p.LosslessSince == 0 {
		return
	}
	r := rand.New(rand.NewPCG(seed, 4))
	w.healing = false
	w.bursts = append(w.bursts, burst{w.now, w.now + copiedWithin})
	w.runUntil(w.now + leisurely)
	if w.failure != nil || !w.isHealthy() || w.api.cluster().status.Promotion.Epoch != p.Epoch {
		return
	}
	w.tell("STARVED: all replicas lose their volumes")
	for _, name := range c.status.InstanceNames {
		if name != p.Instance {
			w.truth.losses++
			w.api.deleteVolume(name)
			w.api.deletePod(name, "", r.IntN(2) == 0)
		}
	}
	w.at(time.Duration(r.Int64N(int64(40*time.Second))), nowhere, w.besides(r.IntN(6), p.Instance))
	w.isFed(p)
}

// besides is what else happens meanwhile.
func (w *world) besides(what int, primary string) func() {
	return func() {
		m, s := w.managerOf(primary), w.serverOf(primary)
		switch {
		case what == 0 && s != nil:
			w.tell("mysqld of %s is killed", primary)
			s.end(true)
		case what == 1 && m != nil && !m.dead:
			m.tell("the container crashes")
			m.die(false)
		case what == 2:
			w.tell("the Pod of %s is deleted", primary)
			w.api.deletePod(primary, "", false)
		case what == 3:
			w.crashOperator(&dice{left: []uint32{uint32(w.now)}})
		}
	}
}

// isFed fails the run unless writes are acknowledged again within the bound, and the cluster is
// healthy, or says which replica is broken.
func (w *world) isFed(p *core.Promotion) {
	began := w.now
	w.runUntil(w.now + 5*time.Second)
	since := w.now
	for w.failure == nil && w.now < began+copiedWithin {
		w.runUntil(w.now + time.Second)
		// A copy that took so long that the source has purged what comes after it is told
		// as broken, for a human to have it recreated; writes go on.
		if isTold := len(w.api.cluster().status.Broken) > 0; w.truth.lastAck > since && (w.isHealthy() || isTold) {
			w.cover.count("end", "starved, and fed")
			return
		}
	}
	w.fail("I7", "all replicas lost their data, and %s later no write is acknowledged (the last one at %s of %s): %s",
		copiedWithin, w.truth.lastAck, began, w.situation())
}
