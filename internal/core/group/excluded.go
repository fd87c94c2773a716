package group

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// countOn makes members the whole group: a majority is counted of them from now on. The view
// of the new group is not known until a member reports it. Every other instance is recorded
// as left out, together with held, the GTID set that the group surely continues from. An
// instance that was left out before keeps what is in the set of that time, too. Together is the union of what
// the members hold. The epoch is that of the recovery.
func (d *decision) countOn(members []string, held, together gtid.Set) {
	before := *d.g
	d.g.ViewMax, d.g.ViewID, d.g.LeftOut = len(members), "", nil
	same, excluded := held, before.IsPending()
	for i := range d.Instances {
		name := d.Instances[i].Name
		was, is := before.LeftOutOf(name)
		is = is && !was.Admitted
		excluded = excluded || is
		l := core.LeftOut{Instance: name, Held: held, Together: together}
		switch {
		case slices.Contains(members, name):
			if is { // those who went on without it may have given numbers again since
				same = same.Intersect(was.Held)
			}
			continue
		case is:
			// The recovery of that time may not have come about, and who goes on now holds less.
			l.Held, l.Together = was.Held.Intersect(held), was.Together
		}
		d.g.LeftOut = append(d.g.LeftOut, l)
	}
	d.g.NoteRecovery(core.GroupRecovery{Epoch: d.Status.Epoch, Held: same, Pending: !excluded})
}

// isVoid reports whether the recovery that was ordered last came to nothing. Each of those who were
// to go on says, now, that it is in the group that is seen, and so is one who was to be left out.
// Whoever had gone on would admit none of these: it was told so with the order, and hears nothing
// else before this is seen.
func (d *decision) isVoid() bool {
	if !d.g.IsPending() {
		return false
	}
	back, went := false, 0
	for i := range d.Instances {
		in := &d.Instances[i]
		if d.g.WentOnWithout(in.Name) {
			m, listed := d.seen.members[in.Name]
			back = back || listed && m.State != core.MemberUnreachable
			continue
		}
		r, known := in.Report.Get()
		v, heard := viewOf(in)
		if !known || !heard || !d.isFresh(in) || !v.IsQuorate() || v.ViewID != d.seen.viewID ||
			!core.AdmitsAtOnce(r.Version) {
			return false
		}
		went++
	}
	return back && went == d.g.ViewMax // none of those is gone
}

// forget the recovery that came to nothing. In a new epoch an order that is late is refused.
func (d *decision) forget() {
	d.Status.Epoch++
	d.Tell(core.ReasonRecoveryVoid, "the quorum recovery that was ordered did not happen: the group continues as it "+
		"was, and no instance is excluded")
	d.Again = true
}

// without tells whom the group goes on without.
func (d *decision) without() string {
	var names []string
	for _, l := range d.g.LeftOut {
		names = append(names, l.Instance)
	}
	if len(names) == 0 {
		return "no instance is excluded"
	}
	return "excluded: " + strings.Join(names, ", ")
}

// recoverySources returns the instances from which the group may be recovered: the survivors of the last
// recovery, because they may have acknowledged transactions since. If that recovery is known
// never to have taken effect, or the survivors have lost their data, all instances qualify.
func (d *decision) recoverySources() []*core.Instance {
	var went, excluded []*core.Instance
	since := false
	for i := range d.Instances {
		in := &d.Instances[i]
		r, known := in.Report.Get()
		switch {
		case d.holdsNothing(in):
		case d.g.Excludes(in.Name):
			excluded = append(excluded, in)
		default:
			went = append(went, in)
			since = since || !known || !d.isFresh(in) || r.Server == nil || d.hasGoneOn(r.Server)
		}
	}
	if since {
		return went
	}
	return slices.Concat(went, excluded)
}

// unproven tells why it is not known from whom to go on; "" when it is. Somebody was told to
// go on without others, was never seen to have done so, and holds more by now: it may have,
// and have given their numbers to transactions of its own; or the group of before came back
// first, with them in it.
func (d *decision) unproven() string {
	var gone, others []string
	for i := range d.Instances {
		in := &d.Instances[i]
		r, known := in.Report.Get()
		l, _ := d.g.LeftOutOf(in.Name)
		switch {
		case d.holdsNothing(in):
		case !d.g.Excludes(in.Name):
			if known && r.Server != nil && d.hasGoneOn(r.Server) {
				gone = append(gone, in.Name)
			}
		case !known || r.Server == nil || !l.Excess(r.Server).IsEmpty():
			others = append(others, in.Name)
		}
	}
	if d.g.ViewID != "" || len(gone) == 0 || len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("the last recovery of the group was never seen to take effect. Since then %s gained "+
		"transactions, and %s may have, too: the same GTID may now be a different transaction on each side. Compare "+
		"what they hold, and save what you need. Then delete the PersistentVolumeClaim, then the Pod, of each of them "+
		"on the side that you give up, and ask again", strings.Join(gone, ", "), strings.Join(others, ", "))
}

// hasGoneOn reports whether the server holds more than any of those held who went on when
// somebody was left out.
func (d *decision) hasGoneOn(s *core.Server) bool {
	return slices.ContainsFunc(d.g.LeftOut, func(l core.LeftOut) bool {
		return !l.Admitted && !l.Held.Union(l.Together).Contains(s.Holds())
	})
}

// takeBack gives those who were left out a say again once the group has them. Before they may
// join, what they hold is compared with what the group went on from. It takes a row of
// exclusionTable for each.
func (d *decision) takeBack() {
	var left []core.LeftOut
	void := d.isVoid()
	for i := range d.g.LeftOut {
		l := d.g.LeftOut[i]
		e := d.newExclusion(&l)
		e.isVoid = void
		row := e.row()
		d.tookBack = append(d.tookBack, row)
		if row.do != nil {
			row.do(d, e)
		}
		if row.then != "" {
			l.Admitted = row.then == instanceAdmitted
		}
		if row.then != instanceCounted {
			left = append(left, l)
		}
	}
	d.g.LeftOut = left
	d.g.SettleRecovery(void)
	if void {
		d.forget()
	}
}

// beyond is what an instance holds and those did not who went on without it. Whether it has
// come to that is known when the group was seen since.
func (d *decision) beyond(in *core.Instance, diverged bool) gtid.Set {
	r, known := in.Report.Get()
	if l, out := d.g.LeftOutOf(in.Name); known && out && (d.seen.agreed || diverged) {
		return l.Excess(r.Server)
	}
	return gtid.Set{}
}

// leaveFirst has an instance that was left out leave what it has of a group, before it is judged.
// In a group of its own it could still get more.
func (d *decision) leaveFirst(e *exclusion) {
	d.Do(core.ReceivePromise{Instance: e.name, Epoch: d.Status.Epoch + 1})
}

func (d *decision) leaveForeign(e *exclusion) {
	d.Block(core.RefusalSplitBrain, fmt.Sprintf("%s was excluded from the group, but is online in another group with "+
		"a quorum: two groups may have taken writes. The operator tells it to leave that group; check what it holds "+
		"that the group lacks, then recreate its data (kubectl cnmsql reinit %s %s)", e.name, d.Cluster.Name, e.name))
	d.leaveFirst(e)
}

// admit lets it join again.
func (d *decision) admit(*exclusion) { d.Again = true }

// staleAfter is how old a report may be that is of now. A manager whose mysqld answers no question
// about its group tells what it knew last.
const staleAfter = 5 * time.Second

// isFresh reports whether what is known of the instance is of now.
func (d *decision) isFresh(in *core.Instance) bool {
	return in.Report.Known() && d.Now.Sub(in.Report.NotBefore()) <= staleAfter
}
