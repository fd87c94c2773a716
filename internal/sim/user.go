package sim

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// user is the human: asks for things at the worst moments, and, when the faults
// have ended, does what only a human may decide.
type user struct {
	w *world
	// blocked since, in healing.
	blocked time.Duration
	acted   time.Duration
}

func (w *world) wishSwitchover(d *dice) {
	c := w.api.cluster()
	if len(c.status.InstanceNames) == 0 {
		return
	}
	to := c.status.InstanceNames[d.upTo(len(c.status.InstanceNames))]
	w.tell("the user asks for %s as primary", to)
	at := w.clockOf(clientMachine)
	w.api.updateCluster(0, func(c *clusterObject) { c.status.TargetPrimary, c.status.TargetPrimaryAt = to, kept(at) })
}

func (w *world) scale(d *dice) {
	n := w.api.cluster().spec.instances
	to := n + 1
	if n > 1 && d.upTo(2) == 0 || n >= most {
		to = n - 1
	}
	if d.upTo(2) == 0 { // by two
		to = max(1, min(to+to-n, most))
	}
	w.scaleTo(to)
}

// most instances that a user wishes for.
const most = 5

func (w *world) scaleTo(n int) {
	w.tell("spec.instances is %d", n)
	w.editSpec(func(s *clusterSpec) { s.instances = n })
}

// growInVain has a user wish for more instances, for which there is no room, or to which it takes
// long to copy data. After a while there is room, or the user takes the wish back.
func (w *world) growInVain(d *dice) {
	before := w.api.cluster().spec.instances
	if before >= most {
		return
	}
	w.hinderGrowth(d.upTo(2) == 0)
	w.scaleTo(min(before+2, most))
	takesBack := d.upTo(2) == 0
	w.later(d.between(10*time.Second, 150*time.Second), func() {
		if takesBack {
			w.scaleTo(before)
		}
		w.letGrow()
	})
}

func (w *world) hinderGrowth(noRoom bool) {
	w.noRoom, w.slowClones = noRoom, !noRoom
	w.tell("new instances find no room: %t; to copy data takes minutes: %t", noRoom, !noRoom)
}

func (w *world) letGrow() { w.noRoom, w.slowClones = false, false }

func (w *world) deletePod(d *dice) {
	in := w.pickInstance(d)
	w.tell("the Pod of %s is deleted", in)
	w.api.deletePod(in, "", false)
}

func (w *world) deletePodByForce(d *dice) {
	in := w.pickInstance(d)
	w.tell("the Pod of %s is deleted by force", in)
	w.api.deletePod(in, "", true)
}

// loseVolume deletes the claim and the Pod of an instance, politely or by force, if that much may
// be lost.
func (w *world) loseVolume(d *dice) {
	in := w.pickInstance(d)
	if v := w.api.volume(in); v == nil || v.data.stage != stagePopulated || !w.mayLose(in) {
		return
	}
	w.truth.losses++
	force := d.upTo(2) == 0
	w.tell("the volume and the Pod of %s are deleted (by force: %t)", in, force)
	w.api.deleteVolume(in)
	w.api.deletePod(in, "", force)
}

func (w *world) drain(d *dice) {
	n := w.pickNode(d)
	w.tell("%s is drained", n.name)
	w.api.updateNode(n.name, func(o *nodeObject) { o.draining = true })
	for _, name := range sortedKeys(w.api.objects[kindPod]) {
		if w.api.pod(name).node == n.name {
			w.api.deletePod(name, "", false)
		}
	}
	w.later(d.between(5*time.Second, 60*time.Second), func() {
		w.api.updateNode(n.name, func(o *nodeObject) { o.draining = false })
	})
}

func (w *world) annotateDemote(d *dice) {
	in := w.pickInstance(d)
	w.tell("the Pod of %s is annotated to demote", in)
	w.api.updatePod(in, "", func(p *podObject) { p.demote = true })
}

// fencePod takes an instance out of service for a while.
func (w *world) fencePod(d *dice) {
	in := w.pickInstance(d)
	w.tell("%s is fenced by annotation", in)
	w.api.updatePod(in, "", func(p *podObject) { p.fence = true })
	w.later(d.between(2*time.Second, 40*time.Second), func() {
		w.tell("%s is fenced no more", in)
		w.api.updatePod(in, "", func(p *podObject) { p.fence = false })
	})
}

func (w *world) wishReinit(d *dice) {
	in := w.pickInstance(d)
	if w.mayLose(in) {
		w.truth.losses++
		w.askToReinit(in)
	}
}

func (w *world) askToReinit(in string) {
	w.tell("a human asks for the data of %s to be recreated", in)
	w.editSpec(func(s *clusterSpec) { s.reinit = append(slices.Clone(s.reinit), core.ReinitRequest{Instance: in}) })
}

// heal ends all faults.
func (w *world) heal() {
	w.healing = true
	w.heals++
	w.tell("the faults end")
	w.letGrow()
	w.takeOver()
	w.noQuota = false
	w.stays = false
	for a := range w.machines {
		for b := range w.machines {
			w.mend(a, b)
			w.link(a, b).slow = 0
		}
		w.machines[a].pausedUntil = min(w.machines[a].pausedUntil, w.now)
	}
	for _, n := range w.nodes {
		if w.machines[n.machine].off {
			n.powerOn()
		}
		w.api.updateNode(n.name, func(o *nodeObject) { o.outOfService, o.draining = false, false })
	}
	for _, s := range w.servers() {
		s.resume()
		s.slow = 0
		if s.db.sqlError != "" {
			s.db.sqlError = ""
			s.startApplying()
		}
	}
	for _, v := range w.truth.dbs {
		v.full, v.stalled = false, false
		if v.db != nil {
			v.db.sqlError = ""
		}
	}
	for _, op := range w.ops {
		op.crashAfterWrite, op.crashOnceMade = false, nil
	}
	if len(w.ops) > 1 {
		w.ops[0].crash()
	}
	for _, name := range sortedKeys(w.api.objects[kindPod]) {
		w.api.updatePod(name, "", func(p *podObject) { p.fence = false })
	}
	w.at(time.Second, nowhere, w.ensureOperator)
}

// help does what the documentation tells the person on call to do.
func (u *user) help() {
	w := u.w
	s := &w.api.cluster().status
	if s.Phase != core.PhaseBlocked {
		u.blocked = 0
	} else if u.blocked == 0 {
		u.blocked = w.now
	}
	if w.now-u.acted < 30*time.Second {
		return
	}
	holder, refusal := "", core.Reason("")
	if s.Blocked != nil {
		refusal = s.Blocked.Reason
	}
	if s.Promotion != nil {
		holder = s.Promotion.Instance
	}
	if s.Diagnosis == core.PrimaryHealthy || s.Diagnosis == core.PrimaryClosed || s.Diagnosis == core.PrimaryFollows {
		for _, name := range append(slices.Clone(s.Diverged), s.Broken...) {
			if name != holder {
				u.reclone(name)
				return
			}
		}
	}
	if w.now-w.healedAt > 3*time.Minute && holder != "" && w.isDataGone(holder) {
		u.acceptLoss()
		return
	}
	if u.blocked == 0 || w.now-u.blocked < time.Minute {
		return
	}
	switch {
	case s.Diagnosis == core.PrimaryLostTransactions && w.oneIn(2): // the replicas are right
		u.acted = w.now
		w.tell("a human deletes the Pod and the volume of the primary %s", holder)
		w.api.deleteVolume(holder)
		w.api.deletePod(holder, "", false)
	case s.Diagnosis == core.PrimaryLostTransactions:
		for _, name := range s.InstanceNames {
			if name != holder {
				u.reclone(name)
			}
		}
	case w.now-w.healedAt > 3*time.Minute && slices.Contains(namesOverride, refusal):
		u.acceptLoss() // all are back, and it was not enough
	case s.Diagnosis == core.PrimaryDataLost, refusal == core.RefusalIncomparable, refusal == core.RefusalAllDiverged:
		u.acceptLoss()
	case s.Promotion != nil && s.Diagnosis != core.PrimaryDataLost && w.nodeOf(s.Promotion.Node) != nil &&
		!s.EstablishedAt.IsZero():
		u.declareDead(w.nodeOf(s.Promotion.Node))
	}
}

// namesOverride are the refusals whose message names the override as a way out.
var namesOverride = []core.Reason{core.RefusalTooFewKnown, core.RefusalIncomparable, core.RefusalAllDiverged,
	core.RefusalStatusRegressed}

// isDataGone reports whether what an instance held is destroyed.
func (w *world) isDataGone(instance string) bool {
	v := w.api.volume(instance)
	return v == nil || v.data.stage != stagePopulated
}

// acceptLoss has a human choose who holds the most of what is left, because the primary's data is
// gone and nobody may be promoted.
func (u *user) acceptLoss() {
	w := u.w
	var best *mysqld
	for _, s := range w.servers() {
		if s.answers() && s.volume.stage == stagePopulated && !s.volume.gone && w.serverOf(s.manager.me) == s &&
			(best == nil || s.db.executed.Count() > best.db.executed.Count()) {
			best = s
		}
	}
	if best == nil || w.api.cluster().status.Promotion == nil {
		return
	}
	u.acted = w.now
	epoch := w.api.cluster().status.Promotion.Epoch
	w.cover.count("human", "accepts a loss")
	w.tell("a human accepts what is lost with %s", best.manager.me)
	w.editSpec(func(s *clusterSpec) { s.override = &core.Override{To: best.manager.me, Epoch: epoch} })
}

// declareDead has a human switch the node off, say so, and switch it on again, because nobody
// knows what became of the Pod on it that took writes.
func (u *user) declareDead(n *node) {
	w := u.w
	u.acted = w.now
	w.cover.count("human", "taints a node")
	w.tell("a human switches %s off", n.name)
	w.beforeNetworkChange()
	n.powerOff()
	w.taint(n)
	w.at(20*time.Second, nowhere, func() {
		w.tell("%s is on", n.name)
		n.powerOn()
		w.untaint(n)
	})
}

// isHopeless reports whether nobody holds the cluster's data any more, or it never had any and its
// first instance is lost. Then a human restores a backup, or starts again.
func (w *world) isHopeless() bool {
	s := &w.api.cluster().status
	if s.EstablishedAt.IsZero() {
		return s.Promotion != nil
	}
	for _, v := range w.truth.dbs {
		if !v.gone && v.stage == stagePopulated {
			return false
		}
	}
	return true
}

func (u *user) reclone(name string) {
	w := u.w
	u.acted = w.now
	w.cover.count("human", "reclones")
	if w.oneIn(2) {
		w.askToReinit(name)
		return
	}
	w.tell("a human deletes the Pod and the volume of %s", name)
	w.api.deleteVolume(name)
	w.api.deletePod(name, "", false)
}

// isHealthy reports whether everything is as it should be.
func (w *world) isHealthy() bool {
	c := w.api.cluster()
	s := &c.status
	if s.Phase != core.PhaseHealthy || s.Promotion == nil || len(s.Members) != c.spec.instances ||
		len(w.api.objects[kindPod]) != c.spec.instances {
		return false
	}
	for _, name := range sortedKeys(w.api.objects[kindPod]) {
		if p := w.api.pod(name); !p.ready || p.deleting {
			return false
		}
	}
	primary := w.serverOf(s.Promotion.Instance)
	route := get[routeObject](w.api, kindRoute, "rw")
	return primary != nil && primary.epoch == s.Epoch && route.primary == s.Promotion.Instance
}
