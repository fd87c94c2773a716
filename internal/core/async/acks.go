package async

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// acknowledge keeps the number of acknowledgements that commits wait for.
func (d *decision) acknowledge() {
	d.Status.Durable, d.Status.DurableMessage, d.Status.CommitsHang = "", "", false
	c := d.Cluster
	n := d.members()
	wished := c.Durability.Wished(n)
	if d.Status.Promotion == nil {
		return
	}
	holder := d.holder()
	r, ok := serving(holder)
	if !ok || !writable(r, d.Status.Promotion) {
		if wished > 0 {
			d.Status.Durable, d.Status.DurableMessage = core.DurableUnknown,
				"there is no writable primary that could be asked"
		}
		return
	}
	applied := 0
	if r.Server.SemiSync.SourceEnabled {
		applied = r.Server.SemiSync.Acks
	}
	attached := d.attached(r, holder.Name)
	if attached >= applied {
		d.adopt(r)
	}
	acks := c.Durability.Acks(n, n-d.goneForGood(), attached, applied)
	blocks := c.Durability.Mode.WaitsForEver()
	waitsOtherwise := acks != applied || acks > 0 && blocks != r.Server.SemiSync.Blocks
	d.orderAcks(r.Server.SemiSync, acks, waitsOtherwise)
	if waitsOtherwise {
		d.Announce(false, core.ReasonAcksChanged, strconv.Itoa(acks), acksText(holder.Name, acks,
			wished, applied, blocks))
	}
	sure := applied
	if !r.Server.SemiSync.SourceActive || blocks && !r.Server.SemiSync.Blocks {
		sure = 0
	}
	d.noteGuarantee(min(acks, sure))
	if attached < applied && !c.Durability.Mode.LowersAcks() {
		if r.Server.SemiSync.LocksAccounts {
			d.Doing(fmt.Sprintf("a statement that changes an account waits on %s for %s, and %s attached: until it "+
				"is acknowledged, nobody can log in or write",
				holder.Name, core.Acknowledgements(applied), are(attached, "replica")))
		}
		d.tellHangs(applied, attached)
	}
	if pod, known := holder.Pod.Get(); known && pod.Exists && !pod.Current && blocks != r.Server.SemiSync.Blocks {
		d.Status.Durable, d.Status.DurableMessage = core.DurableUnknown,
			"the primary still runs with an earlier spec; how its commits wait is certain after its restart"
		return
	}
	// What was promised is what was asked for, also while some have no data yet.
	d.tellDurable(r.Server.SemiSync, attached, applied, max(wished, c.Durability.Wished(c.Wanted)))
}

// orderAcks has commits wait for another number of acknowledgements, or numbers the order
// again that was given last. A change of the number, and what an election may rely on with it, is
// written to the status before the order is given.
func (d *decision) orderAcks(s core.SemiSync, acks int, waitsOtherwise bool) {
	p := d.Status.Promotion
	obeyed := s.OrderIn(p.Epoch)
	isNew := p.OrderedAcks != acks || obeyed > p.AcksOrder
	if !waitsOtherwise && obeyed == p.AcksOrder && (p.AcksOrder == 0 || !isNew) {
		return
	}
	if p.AcksOrder == 0 || isNew {
		p.AcksOrder, p.OrderedAcks = max(p.AcksOrder, obeyed)+1, acks
	}
	d.Do(core.SetAcks{Instance: p.Instance, Epoch: p.Epoch, Acks: acks, Order: p.AcksOrder})
}

func acksText(primary string, acks, wished, applied int, blocks bool) string {
	text := fmt.Sprintf("commits on %s wait for %d of %s (%d before)", primary, acks,
		core.Plural(wished, "wished acknowledgement"), applied)
	switch {
	case acks != applied:
		return text
	case blocks:
		return text + ", from now on without a time limit"
	default:
		return text + ", from now on no longer than spec.mysql.semiSync.timeoutMillis"
	}
}

// attachTime is how long replicas may take to follow a new primary before it is called
// a problem that commits wait for them.
const attachTime = 5 * time.Second

// tellHangs tells that fewer replicas are attached than commits wait for. For a moment that is so
// after every change of the primary, and then it tells who is on the way.
func (d *decision) tellHangs(acks, attached int) {
	if coming := d.attaching(); len(coming) > 0 {
		d.Doing(attachingText(d.Status.Promotion.Instance, coming))
		d.RecheckAt(d.Status.Promotion.WritableSince.Add(attachTime))
		return
	}
	d.Status.CommitsHang = true
	d.Doing(fmt.Sprintf("commits on %s wait for %s, and %s attached: writes hang until replicas are back%s",
		d.Status.Promotion.Instance, core.Acknowledgements(acks), are(attached, "replica"), d.fullText()))
}

// fullText names the replicas that could acknowledge if they had space.
func (d *decision) fullText() string {
	var full []string
	others(d.Observation, d.Status.Promotion.Instance, func(in *core.Instance) {
		if r, ok := serving(in); ok && r.IsFull() {
			full = append(full, in.Name)
		}
	})
	if len(full) == 0 {
		return ""
	}
	return "; there is no space on the volume of " + strings.Join(full, ", ") + ": raise spec.storage.size"
}

// are is "1 replica is", "2 replicas are".
func are(n int, thing string) string {
	if n == 1 {
		return "1 " + thing + " is"
	}
	return core.Plural(n, thing) + " are"
}

// attaching are the instances that serve and have not begun to follow the new primary
// yet, while it has been writable for no longer than that may take.
func (d *decision) attaching() []string {
	p := d.Status.Promotion
	if p == nil || p.From == "" || p.WritableSince.IsZero() || !d.takesWrites() ||
		!d.Now.Before(p.WritableSince.Add(attachTime)) {
		return nil
	}
	var names []string
	others(d.Observation, p.Instance, func(in *core.Instance) {
		r, serves := serving(in)
		if serves && !streams(r, p.Instance) && replicationError(r) == "" && !r.Terminating && !d.IsFenced(in.Name) &&
			!slices.Contains(d.Status.Diverged, in.Name) {
			names = append(names, in.Name)
		}
	})
	return names
}

func attachingText(primary string, names []string) string {
	verb := " is"
	if len(names) > 1 {
		verb = " are"
	}
	return primary + " takes writes; " + strings.Join(names, ", ") + verb + " being attached"
}

// isHandingOver reports whether all that is left to do of a change of the primary is that
// replicas follow the new one.
func (d *decision) isHandingOver() bool {
	if d.diagnosis.name != core.PrimaryHealthy || len(d.attaching()) == 0 || len(d.Instances) != d.Cluster.Wanted ||
		len(d.Status.Diverged)+len(d.Status.Broken)+len(d.Status.Fenced) > 0 {
		return false
	}
	for i := range d.Instances {
		if r, serves := serving(&d.Instances[i]); !serves || r.Terminating {
			return false
		}
	}
	return true
}

// noteGuarantee keeps what an election may rely on: every acknowledged write is on
// that many replicas. It is lowered before the primary waits for fewer, and raised
// only when as many replicas hold all that was acknowledged with fewer, and the primary
// has obeyed the last order: it obeys no earlier one from then on.
func (d *decision) noteGuarantee(sure int) {
	p := d.Status.Promotion
	forEver := d.Cluster.Durability.Mode.WaitsForEver()
	switch {
	case sure < p.RequiredAcks:
		p.RequiredAcks = sure
	case (sure > p.RequiredAcks || sure > 0 && forEver && p.LosslessSince == 0) && d.isHeldBy(sure):
		p.RequiredAcks = sure
		if forEver && p.LosslessSince == 0 && d.haveOthersEnded(sure) {
			p.LosslessSince = p.Epoch
		}
	}
	if !forEver || p.RequiredAcks == 0 {
		p.LosslessSince = 0
	}
}

// isHeldBy reports whether that many replicas hold all that the primary had in its binary log at some
// moment at which it waited for that many already. (A report's position is read after how commits wait.)
// What it had executed is not enough: a commit that ended its wait before may not be in that yet.
func (d *decision) isHeldBy(count int) bool {
	return slices.ContainsFunc(d.waitedFor(count), func(s *core.Server) bool {
		return d.replicasWith(s.Logged()) >= count
	})
}

// haveOthersEnded reports whether no commit is left that began to wait before commits waited for that many, and
// as many replicas hold all that was in the binary log by then. One that waits as it was told before may yet stop
// waiting, and all others with it.
func (d *decision) haveOthersEnded(count int) bool {
	waited := d.waitedFor(count)
	for i, s := range waited {
		isOver := slices.ContainsFunc(waited[i:], func(before *core.Server) bool {
			return s.Executed.Contains(before.Logged())
		})
		if isOver && d.replicasWith(s.Logged()) >= count {
			return true
		}
	}
	return false
}

// waitedFor is what mysqld of the primary said since its commits wait for that many acknowledgements, and for
// as long as is wished, newest first.
func (d *decision) waitedFor(count int) (said []*core.Server) {
	p, forEver := d.Status.Promotion, d.Cluster.Durability.Mode.WaitsForEver()
	for _, f := range heard(d.holder()) {
		r, known := f.Get()
		if !known || r.Server == nil {
			break
		}
		semi := r.Server.SemiSync
		if !semi.SourceActive || semi.Acks < count || forEver && !semi.Blocks || semi.OrderIn(p.Epoch) != p.AcksOrder {
			break
		}
		said = append(said, r.Server)
	}
	return said
}

// replicasWith counts the members that follow the primary and hold a set.
func (d *decision) replicasWith(set gtid.Set) int {
	n, holder := 0, d.holder().Name
	otherMembers(d.Observation, holder, func(in *core.Instance) {
		if other, ok := serving(in); ok && streams(other, holder) && !slices.Contains(d.Status.Diverged, in.Name) &&
			other.Server.Holds().Contains(set) {
			n++
		}
	})
	return n
}

// attached counts the replicas that acknowledge: both the primary and the
// replicas themselves must say so. One that waits for space acknowledges nothing.
func (d *decision) attached(primary core.Report, name string) int {
	n := 0
	otherMembers(d.Observation, name, func(in *core.Instance) {
		r, ok := serving(in)
		if ok && streams(r, name) && !r.Server.Replication.NoSpace && r.Server.SemiSync.ReplicaEnabled &&
			!slices.Contains(d.Status.Diverged, in.Name) {
			n++
		}
	})
	if primary.Server.SemiSync.SourceEnabled {
		n = min(n, primary.Server.SemiSync.Clients)
	}
	return n
}

func (d *decision) tellDurable(s core.SemiSync, attached, applied, wished int) {
	switch {
	case wished == 0:
	case applied > 0 && !s.SourceActive:
		d.Status.Durable, d.Status.DurableMessage = core.DurableNo,
			"semi-synchronous replication fell back to asynchronous, because replicas did not acknowledge in time: "+
				"an acknowledged write may exist on the primary alone"
	case applied < wished:
		d.Status.Durable, d.Status.DurableMessage = core.DurableNo,
			fmt.Sprintf("a commit waits for %d of %s", applied, core.Plural(wished, "wished acknowledgement"))
	default:
		d.Status.Durable, d.Status.DurableMessage = core.DurableYes, "a commit waits for "+
			core.Acknowledgements(applied)
		if attached < applied { // what was acknowledged is safe nevertheless
			d.Status.DurableMessage += fmt.Sprintf("; %s attached, so that commits do not end",
				are(attached, "replica"))
		}
	}
}
