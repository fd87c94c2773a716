package async

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
	"cnmsql.co/internal/gtid"
)

// join gives every instance without data a donor: a replica if one is free, so
// that the primary is spared; one recipient a donor.
func (d *decision) join() {
	if !d.mayGive() {
		return
	}
	busy := d.BusyDonors()
	var begun, waiting []string
	givers := d.givers()
	for _, in := range d.Recipients() {
		if d.stopsReceiving(in.Name) {
			continue
		}
		if draft.IsUnsuited(in, givers) {
			d.Suit(in, givers)
			continue
		}
		donor := d.donor(busy, in.Name)
		if donor == "" {
			waiting = append(waiting, in.Name)
			continue
		}
		busy[donor] = true
		d.Do(core.CloneFrom{Instance: in.Name, Donor: donor, Epoch: d.Status.Promotion.Epoch})
		begun = append(begun, in.Name+" from "+donor+draft.LastClone(in))
	}
	d.TellClones(begun, waiting)
}

// stopsReceiving reports whether this plan orders an instance to receive nothing: it would refuse a copy, or begin
// one that is thrown away.
func (d *decision) stopsReceiving(name string) bool {
	return slices.ContainsFunc(d.Effects, func(e core.Effect) bool {
		stops, is := e.(core.ReceivePromise)
		return is && stops.Instance == name
	})
}

// givers are the primary, which is the first, and the replicas that have its data, whether or not
// they may give it at this moment; none while the primary could not.
func (d *decision) givers() []*core.Instance {
	if d.Status.Promotion == nil || !d.mayGive() {
		return nil
	}
	out := []*core.Instance{d.holder()}
	others(d.Observation, out[0].Name, func(in *core.Instance) {
		r, ok := serving(in)
		if ok && streams(r, out[0].Name) && !slices.Contains(d.Status.Diverged, in.Name) {
			out = append(out, in)
		}
	})
	return out
}

// donor is a replica if there is one that is free, and else the primary; but not one of
// which commits wait for ever, for the copy would wait for them.
func (d *decision) donor(busy map[string]bool, recipient string) string {
	donors := d.replicaDonors(busy, recipient)
	primary := d.Status.Promotion.Instance
	if !busy[primary] && !d.starving && d.holder().CanCloneTo(d.Instance(recipient)) {
		donors = append(donors, primary)
	}
	return draft.FirstOf(donors, d.Instance(recipient))
}

func (d *decision) replicaDonors(busy map[string]bool, recipient string) (names []string) {
	primary := d.Status.Promotion.Instance
	for i := range d.Instances {
		in := &d.Instances[i]
		r, ok := serving(in)
		if ok && in.Name != primary && in.Name != recipient && !busy[in.Name] && !r.Terminating &&
			streams(r, primary) && !slices.Contains(d.Status.Diverged, in.Name) && d.mayDonate(in, r) &&
			in.CanCloneTo(d.Instance(recipient)) {
			names = append(names, in.Name)
		}
	}
	return names
}

// mayDonate reports whether an instance that serves, and says r, may be a donor. Under quorum an
// instance without data may have acknowledged what a lagging replica does not hold: cloned from
// that replica, it would count as known without it.
func (d *decision) mayDonate(in *core.Instance, r core.Report) bool {
	if d.mayLack(r) {
		return false
	}
	return !d.Cluster.Durability.Mode.IsOnReplicas() || d.hasReached(in, r.Server.Executed, d.holder(), catchUpAge)
}

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
		if forEver && p.LosslessSince == 0 {
			p.LosslessSince = p.Epoch
		}
	}
	if !forEver || p.RequiredAcks == 0 {
		p.LosslessSince = 0
	}
}

// isHeldBy reports whether that many replicas hold all that the primary had executed at some moment
// at which it waited for that many already. (A report's position is read after how commits wait.)
func (d *decision) isHeldBy(count int) bool {
	holder := d.holder()
	p := d.Status.Promotion
	for _, f := range heard(holder) {
		r, known := f.Get()
		if !known || r.Server == nil || !r.Server.SemiSync.SourceEnabled || r.Server.SemiSync.Acks < count ||
			r.Server.SemiSync.OrderIn(p.Epoch) != p.AcksOrder {
			return false
		}
		if d.replicasWith(r.Server.Executed) >= count {
			return true
		}
	}
	return false
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
			"semi-synchronous replication fell back to asynchronous, because replicas did not acknowledge in time: an acknowledged write may exist on the primary alone"
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

// route points writes at the primary by its name, and labels the Pods by role.
// The label of an instance that cannot be asked is left as it is.
func (d *decision) route() {
	p := d.Status.Promotion
	if p == nil {
		return
	}
	takesWrites := d.takesWrites()
	resting := d.labelsRestUntil()
	if !resting.IsZero() {
		d.RecheckAt(resting)
	}
	mayLabel := takesWrites && resting.IsZero()
	if routed, known := d.Cluster.Routed.Get(); known && takesWrites && routed != p.Instance {
		d.Do(core.RouteWrites{Instance: p.Instance})
	}
	for i := range d.Instances {
		in := &d.Instances[i]
		pod, podKnown := in.Pod.Get()
		r, known := in.Report.Get()
		fenced := d.IsFenced(in.Name)
		if !podKnown || !pod.Exists || pod.Terminating || !known && !fenced || d.IsEnding(in.Name) {
			continue
		}
		if pod.DemoteRequested && takesWrites && in.Name != p.Instance {
			d.Do(core.ClearDemote{Instance: in.Name})
		}
		// Labels move endpoints, and kube-proxy holds a second change back for
		// a second: until -rw leads to the one who takes writes, the next change is -rw's.
		if !mayLabel && !slices.Contains(d.Status.Diverged, in.Name) && !fenced &&
			!d.mustReadHere(in, pod, r) {
			continue
		}
		role := core.LabelPod{Instance: in.Name, Role: "replica"}
		switch {
		case in.Name == p.Instance && takesWrites:
			role.Role = "primary"
		case !takesWrites: // it is what it was until another is writable
			role.Role = pod.Role
		}
		role.Routable = !fenced && d.routable(in, r)
		if role.Role != "" && (pod.Role != role.Role || pod.Routable != role.Routable) {
			d.Do(role)
		}
	}
}

// labelsRestUntil is until when labels wait, for -rw has just been led to a new primary; zero when
// they do not.
func (d *decision) labelsRestUntil() time.Time {
	p := d.Status.Promotion
	if !d.takesWrites() || p.From == "" {
		return time.Time{}
	}
	return d.LabelsRestUntil(p.WritableSince)
}

func (d *decision) routable(in *core.Instance, r core.Report) bool {
	if _, ok := serving(in); !ok || slices.Contains(d.Status.Diverged, in.Name) {
		return false
	}
	if in.Name == d.Status.Promotion.Instance {
		return true
	}
	if r.Lagging && !d.lastReader(in.Name) {
		d.TellLags(in.Name)
		return false
	}
	return r.Server.Replication != nil
}

// mustReadHere reports whether a replica that was left out because it lags is the best there is.
func (d *decision) mustReadHere(in *core.Instance, pod core.Pod, r core.Report) bool {
	return r.Lagging && !pod.Routable && d.lastReader(in.Name)
}

// lastReader reports whether no other instance serves reads that are fresh enough.
func (d *decision) lastReader(name string) bool {
	last := true
	others(d.Observation, name, func(in *core.Instance) {
		r, ok := serving(in)
		isPrimary := in.Name == d.Status.Promotion.Instance && d.takesWrites()
		if ok && !slices.Contains(d.Status.Diverged, in.Name) &&
			(isPrimary || r.Server.Replication != nil && !r.Lagging) {
			last = false
		}
	})
	return last
}
