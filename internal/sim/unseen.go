package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// unseenDramas are the dramas in which a Pod of the primary is made, takes writes, and is out of
// sight before any operator has seen it.
var unseenDramas = [][]scene{
	{{kind: unseenPod}, {kind: "all appliers stop with an error"},
		{within: time.Second, kind: "a Pod is deleted", primary: true}},
	{{kind: unseenPod}, {kind: "all appliers stop with an error"}, {within: 300 * time.Millisecond,
		kind: "a Pod is deleted", primary: true},
		{within: time.Second, kind: "mysqld crashes", primary: true}},
	{{kind: unseenPod}, {kind: "mysqld crashes", primary: true}, {within: 300 * time.Millisecond,
		kind: "a Pod is deleted", primary: true}},
}

const unseenPod = "the operator dies once it has made a Pod of the primary, which nobody sees again"

func init() {
	faultKinds = append(faultKinds, faultKind{unseenPod, 0, (*world).loseUnseen})
}

// hasUnseen reports whether the run of the seed gets such a drama: one seed of 32 does. Its
// volumes are of those that every node can have, because only then the next Pod may run elsewhere.
func hasUnseen(seed uint64) bool { return seed%32 == 15 }

func withUnseen(seed uint64, out []Fault) []Fault {
	if !hasUnseen(seed) {
		return out
	}
	r := rand.New(rand.NewPCG(seed, 6))
	at := 25*time.Second + time.Duration(r.Int64N(int64(40*time.Second)))
	out = append(out, act(r, unseenDramas[r.IntN(len(unseenDramas))], &at)...)
	slices.SortStableFunc(out, func(a, b Fault) int { return int(a.At - b.At) })
	return out
}

// loseUnseen has the operator end once it has made a Pod of the primary, and loses that Pod. The
// Pod goes back to the node of its volume, gets the time to take writes, and is cut off from API
// server and operators. A human deletes it by force and cordons the node. The next operator starts
// when all is over.
func (w *world) loseUnseen(d *dice) {
	start, hide := d.between(9*time.Second, 15*time.Second), d.between(3*time.Second, 7*time.Second)
	heals := w.heals
	w.stays = true
	for _, op := range w.ops {
		op.crashOnceMade = func() {
			in := w.api.cluster().status.Promotion.Instance
			w.cover.count("operator", "died once it had made a Pod of the primary")
			w.stays = false
			w.at(start, nowhere, w.ensureOperator)
			w.at(hide, nowhere, func() {
				if p := w.api.pod(in); p != nil && w.nodeOf(p.node) != nil && w.heals == heals {
					w.hide(w.nodeOf(p.node).machine, in, p.uid)
				}
			})
		}
	}
}

// hide cuts a node off from all who decide, and deletes a Pod that runs on it.
func (w *world) hide(machine int, instance, uid string) {
	w.tell("%s cannot reach the control plane, and the Pod of %s is deleted by force",
		w.machines[machine].name, instance)
	for _, to := range []int{apiMachine, operatorMachine1, operatorMachine2} {
		w.cutBoth(machine, to, time.Minute)
	}
	name := w.machines[machine].name
	w.api.updateNode(name, func(o *nodeObject) { o.draining = true })
	w.later(time.Minute, func() { w.api.updateNode(name, func(o *nodeObject) { o.draining = false }) })
	w.api.deletePod(instance, uid, true)
}

// diesOnceMade ends the operator if it is to end once it has made a Pod of the primary, and this
// effect made one. It reports whether it did; the operator sees no more of the Pod.
func (op *operator) diesOnceMade(e core.Effect, made bool) bool {
	create, is := e.(core.CreatePod)
	if !is || !made || create.Awaited == "" || op.crashOnceMade == nil {
		return false
	}
	op.crash()
	op.crashOnceMade()
	return true
}
