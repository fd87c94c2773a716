package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

// operatorCallLimit bounds an operator's call to the API server. The product has no such bound: there, the connection
// ends that is not answered.
const operatorCallLimit = 10 * time.Second

// keptStatus is a status as it is read back from the API, as far as it is decided by: times lose what is below a
// microsecond, and State, which is published and never read, is gone. Notices, past operations and what is said of
// durability stay as they were decided.
func keptStatus(s core.Status) core.Status {
	s.CurrentPrimaryAt, s.TargetPrimaryAt = kept(s.CurrentPrimaryAt), kept(s.TargetPrimaryAt)
	s.FailingSince, s.LastFailover, s.EstablishedAt = kept(s.FailingSince), kept(s.LastFailover), kept(s.EstablishedAt)
	s.State = ""
	if p := s.Promotion; p != nil {
		c := *p
		c.GrantedAt, c.WritableSince = kept(c.GrantedAt), kept(c.WritableSince)
		s.Promotion = &c
	}
	if o := s.Operation; o != nil {
		c := *o
		c.StartedAt, c.Deadline = kept(c.StartedAt), kept(c.Deadline)
		s.Operation = &c
	}
	return s
}

// publish writes the status, if it changed, on the condition that the Cluster is
// still the one that was observed; then the plan is carried out.
func (op *operator) publish(c *clusterObject, rv int64, o core.Observation, plan core.Plan, v *verdict) {
	w := op.w
	op.generation = c.generation
	status := keptStatus(plan.Status)
	if w.story.on {
		w.tellPlan(op, &o, &plan)
	}
	if sameStatus(&c.status, &status) {
		v.accept()
		op.act(plan, plan.Effects)
		return
	}
	ahead, rest := plan.Ahead()
	op.change(ahead, func() {})
	w.call(op.machine, apiMachine, operatorCallLimit, func(reply func(func())) {
		if w.mut.WriteAnyVersion {
			rv = 0
		}
		if !w.api.updateCluster(rv, func(c *clusterObject) { c.status = status }) {
			reply(op.conflict)
			return
		}
		v.accept()
		written, version := w.api.cluster(), w.api.versions[kindCluster][clusterName]
		reply(func() {
			if op.dead {
				return
			}
			op.latest, op.latestRV = written, version
			if op.crashAfterWrite {
				w.cover.count("operator", "died between status and effects")
				op.crash()
				w.at(w.jitter(5*time.Second), nowhere, func() { w.startOperator(op.machine) })
				return
			}
			op.act(plan, rest)
		})
	}, func() {
		if !op.dead {
			op.retry()
		}
	})
}

// conflict reads the Cluster again, because somebody else wrote it meanwhile, and has the operator
// look once more. It tries again when the API server does not answer.
func (op *operator) conflict() {
	if op.dead {
		return
	}
	w := op.w
	w.call(op.machine, apiMachine, operatorCallLimit, func(reply func(func())) {
		c, rv := w.api.cluster(), w.api.versions[kindCluster][clusterName]
		reply(func() {
			if !op.dead {
				op.latest, op.latestRV = c, rv
				op.next(true, 0)
			}
		})
	}, func() {
		if !op.dead {
			op.retry()
		}
	})
}

// next goes on with another pass, or rests.
func (op *operator) next(again bool, after time.Duration) {
	op.left--
	switch {
	case again && op.left > 0:
		op.pass()
	case again:
		op.rest(core.TurnOver)
	default:
		op.rest(after)
	}
}

// act carries effects of a plan out: commands to instances side by side, all else in order.
func (op *operator) act(plan core.Plan, effects []core.Effect) {
	a := &acting{op: op, plan: plan, open: 1}
	var changes []core.Effect
	for _, e := range effects {
		op.w.truth.checkEffect(e)
		if instance, order := control.OrderOf(e, nameItself); instance != "" {
			a.open++
			op.command(instance, order, func(ok bool) {
				if !ok {
					a.refused++
				}
				a.done()
			})
			continue
		}
		changes = append(changes, e)
	}
	op.failed = strings.Join(plan.Standing, "\n")
	op.change(changes, a.done)
}

// acting is a plan being carried out.
type acting struct {
	op            *operator
	plan          core.Plan
	open, refused int
}

func (a *acting) done() {
	op := a.op
	if a.open--; a.open > 0 || op.dead {
		return
	}
	op.failures = 0
	// No position that changes wakes it here.
	after := min(core.LookAgain, a.plan.LookIn(a.refused > 0 || op.failed != ""))
	// Nothing was heard: to look again would decide the same.
	op.lazy = len(a.plan.Effects) == 0 && a.plan.Recheck == 0 && !op.news
	op.next(a.plan.GoesOn(a.refused > 0), after)
}

// command is one call to a manager, with an order or, when that is nil, for a report alone; the
// report after it is heard.
func (op *operator) command(instance string, o control.Order, done func(ok bool)) {
	w, st := op.w, op.streams[instance]
	if st == nil {
		done(false)
		return
	}
	limit := core.OrderLimit
	if o == nil {
		limit = core.ReportLimit
	}
	over := false
	finish := func(ok bool) {
		if !over && !op.dead {
			over = true
			done(ok)
		}
	}
	k := st.node.containers[st.uid]
	if k == nil || k.manager == nil || k.manager.dead {
		if w.connected(op.machine, st.node.machine) {
			op.at(5*time.Millisecond, func() { finish(false) })
		} else {
			op.at(time.Second, func() { finish(false) })
		}
		return
	}
	m, begun := k.manager, w.now
	w.call(op.machine, m.machine, limit, func(reply func(func())) {
		if m.dead {
			reply(func() { finish(false) })
			return
		}
		asked := w.now
		m.calls = append(m.calls[max(0, len(m.calls)-20):], func() { reply(func() { finish(false) }) })
		answer := func(err string) {
			m.poll()
			snap := m.snapshot(asked)
			reply(func() {
				if err == "" && !op.dead && !st.stopped && st.hear(snap, begun) {
					op.wake()
				}
				finish(err == "")
			})
		}
		if o == nil {
			answer("")
			return
		}
		m.order(o, answer)
	}, func() { finish(false) })
}

// change carries out effects on objects, one after the other.
func (op *operator) change(effects []core.Effect, done func()) {
	if len(effects) == 0 {
		done()
		return
	}
	w, e := op.w, effects[0]
	op.noteMaking(e, true)
	w.call(op.machine, apiMachine, operatorCallLimit, func(reply func(func())) {
		made := w.api.carryOut(e)
		reply(func() {
			if op.dead || op.diesOnceMade(e, made) {
				return
			}
			op.noteMaking(e, made)
			op.noteGrowth(e, made)
			op.change(effects[1:], done)
		})
	}, func() {
		if !op.dead {
			op.failed = e.String()
			op.change(slices.DeleteFunc(slices.Clone(effects[1:]), func(next core.Effect) bool {
				return core.Needs(next, e)
			}), done)
		}
	})
}

// noteMaking remembers by which names Pods are awaited that were refused.
func (op *operator) noteMaking(e core.Effect, mayBe bool) {
	create, is := e.(core.CreatePod)
	if !is || create.Awaited == "" {
		return
	}
	names := op.notMade[create.Instance]
	if mayBe {
		names.Ask(create.Awaited)
	} else {
		names.Refused(create.Awaited)
	}
	op.notMade[create.Instance] = names
}

// seizeLease takes the record for an epoch that nobody holds yet, if it is still
// the version that was seen.
func (a *apiServer) seizeLease(e core.SeizeLease) {
	version := fmt.Sprint(a.versions[kindLease]["primary"])
	if a.lease() == nil || version != e.Version && !a.w.mut.SeizeAnyVersion {
		return
	}
	a.w.tell("the lease is seized for epoch %d", e.Epoch)
	a.put(kindLease, "primary", &leaseObject{uid: a.w.name("lease"), epoch: e.Epoch})
}

// resetLease leaves the record to nobody, if it is still the version that was seen and nobody
// was promoted since.
func (a *apiServer) resetLease(e core.ResetLease) {
	p := a.cluster().status.Promotion
	if a.lease() == nil || fmt.Sprint(a.versions[kindLease]["primary"]) != e.Version || p == nil || !e.IsOf(p.Epoch) {
		return
	}
	a.w.tell("the lease is set back to epoch %d", e.Epoch)
	a.put(kindLease, "primary", &leaseObject{uid: a.w.name("lease"), epoch: e.Epoch})
}

// carryOut does what an effect asks for; false when a Pod or a growth was refused.
func (a *apiServer) carryOut(e core.Effect) bool {
	switch e := e.(type) {
	case core.CreateVolume:
		a.createVolume(e.Instance)
	case core.GrowVolume:
		return a.growVolume(e)
	case core.CreatePod:
		return a.createPod(e.Instance, e.Awaited)
	case core.DeletePod:
		a.deletePod(e.Instance, e.UID, false)
	case core.DeleteInstance:
		a.deleteOwned(e.Instance, e.Owned, false)
	case core.LabelPod:
		a.updatePod(e.Instance, "", func(p *podObject) { p.role, p.routable = e.Role, e.Routable })
	case core.ClearDemote:
		a.updatePod(e.Instance, "", func(p *podObject) { p.demote = false })
	case core.SeizeLease:
		a.seizeLease(e)
	case core.ResetLease:
		a.resetLease(e)
	case core.ReinitInstance:
		a.deleteOwned(e.Instance, e.Owned, slices.Contains(a.cluster().status.Diverged, e.Instance))
	case core.BindReinit:
		a.updateCluster(0, func(c *clusterObject) { c.spec.reinit = core.BoundReinit(c.spec.reinit, e.Request) })
	case core.ClearReinit:
		a.updateCluster(0, func(c *clusterObject) {
			c.spec.reinit = core.WithoutReinit(c.spec.reinit, e.Instance)
		})
	case core.ClearOverride:
		a.updateCluster(0, func(c *clusterObject) { c.spec.override = nil })
	case core.RouteWrites:
		a.w.truth.routed(e.Instance)
		a.put(kindRoute, "rw", &routeObject{primary: e.Instance})
	default:
		a.w.fail("model", "the model does not know the effect %T", e)
	}
	return true
}

// nameItself is the address of an instance here.
func nameItself(instance string) string { return instance }
