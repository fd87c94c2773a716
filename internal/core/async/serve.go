package async

import (
	"fmt"
	"slices"

	"cnmsql.co/internal/core"
)

// join gives every instance without data a donor: a replica if one is free, so
// that the primary is spared; one recipient a donor.
func (d *decision) join() {
	if d.diagnosis.name != core.PrimaryHealthy {
		return
	}
	busy := d.BusyDonors()
	var begun, waiting []string
	for _, in := range d.Recipients() {
		donor := d.donor(busy, in.Name)
		if donor == "" {
			waiting = append(waiting, in.Name)
			continue
		}
		busy[donor] = true
		d.Do(core.CloneFrom{Instance: in.Name, Donor: donor, Epoch: d.Status.Promotion.Epoch})
		r, _ := in.Report.Get()
		begun = append(begun, in.Name+" from "+donor+lastClone(r))
	}
	d.SayClones(begun, waiting)
}

// lastClone tells why a clone is begun again.
func lastClone(r core.Report) string {
	if r.Clone == nil || r.Clone.Error == "" {
		return ""
	}
	return " (the last attempt failed: " + r.Clone.Error + ")"
}

func (d *decision) donor(busy map[string]bool, recipient string) string {
	primary := d.Status.Promotion.Instance
	for i := range d.Instances {
		in := &d.Instances[i]
		r, ok := serving(in)
		if ok && in.Name != primary && in.Name != recipient && !busy[in.Name] && !r.Terminating &&
			streams(r, primary) && !slices.Contains(d.Status.Diverged, in.Name) && d.mayDonate(in) {
			return in.Name
		}
	}
	if !busy[primary] {
		return primary
	}
	return ""
}

// mayDonate: under quorum an instance without data may have acknowledged what a
// lagging replica does not hold; cloned from it, it would count as known without.
func (d *decision) mayDonate(in *core.Instance) bool {
	r, _ := in.Report.Get()
	return d.Cluster.Durability.Mode != core.DurabilityQuorum || d.hasReached(in, r.Server.Executed, d.holder())
}

// acknowledge keeps the number of acknowledgements that commits wait for.
func (d *decision) acknowledge() {
	d.Status.Durable, d.Status.DurableMessage = "", ""
	c := d.Cluster
	n := len(d.Instances)
	wished := c.Durability.Wished(n)
	if d.Status.Promotion == nil {
		return
	}
	holder := d.holder()
	r, ok := serving(holder)
	if !ok || !writable(r, d.Status.Promotion) {
		if wished > 0 {
			d.Status.Durable, d.Status.DurableMessage = core.DurableUnknown, "there is no writable primary that could be asked"
		}
		return
	}
	applied := 0
	if r.Server.SemiSync.SourceEnabled {
		applied = r.Server.SemiSync.Acks
	}
	attached := d.attached(r, holder.Name)
	acks := c.Durability.Acks(n, attached, applied)
	if acks != applied || acks > 0 && c.Durability.Mode == core.DurabilityQuorum && !r.Server.SemiSync.Blocks {
		d.Do(core.SetAcks{Instance: holder.Name, Epoch: d.Status.Promotion.Epoch, Acks: acks})
		d.Announce(false, core.ReasonAcksChanged, fmt.Sprintf("commits on %s wait for %d of %d wished acknowledgements (%d before)", holder.Name, acks, wished, applied))
	}
	sure := applied
	if !r.Server.SemiSync.SourceActive || c.Durability.Mode == core.DurabilityQuorum && !r.Server.SemiSync.Blocks {
		sure = 0
	}
	d.noteGuarantee(min(acks, sure))
	if attached < applied && c.Durability.Mode != core.DurabilityPreferred {
		d.hangs = true
		d.Say(fmt.Sprintf("commits on %s wait for %d acknowledgements, and %d replicas are attached: writes hang until replicas are back", holder.Name, applied, attached))
	}
	if pod, known := holder.Pod.Get(); known && pod.Exists && !pod.Current {
		d.Status.Durable, d.Status.DurableMessage = core.DurableUnknown, "the primary still runs with a former spec; how commits wait is certain when it has been restarted"
		return
	}
	d.tellDurable(r.Server.SemiSync, applied, wished)
}

// noteGuarantee keeps what an election may rely on: every acknowledged write is on
// that many replicas. It is lowered before the primary waits for fewer, and raised
// only when as many replicas hold all that was acknowledged with fewer.
func (d *decision) noteGuarantee(sure int) {
	p := d.Status.Promotion
	isQuorum := d.Cluster.Durability.Mode == core.DurabilityQuorum
	switch {
	case sure < p.RequiredAcks:
		p.RequiredAcks = sure
	case (sure > p.RequiredAcks || sure > 0 && isQuorum && p.LosslessSince == 0) && d.isHeldBy(sure):
		p.RequiredAcks = sure
		if isQuorum && p.LosslessSince == 0 {
			p.LosslessSince = p.Epoch
		}
	}
	if !isQuorum || p.RequiredAcks == 0 {
		p.LosslessSince = 0
	}
}

// isHeldBy: that many replicas hold all that the primary had executed at some
// moment at which it waited for that many already. (A report's position is read
// after how commits wait.)
func (d *decision) isHeldBy(count int) bool {
	holder := d.holder()
	for _, f := range heard(holder) {
		r, known := f.Get()
		if !known || r.Server == nil || !r.Server.SemiSync.SourceEnabled || r.Server.SemiSync.Acks < count {
			return false
		}
		have := 0
		others(d.Observation, holder.Name, func(in *core.Instance) {
			if other, ok := serving(in); ok && streams(other, holder.Name) && !slices.Contains(d.Status.Diverged, in.Name) && other.Server.Holds().Contains(r.Server.Executed) {
				have++
			}
		})
		if have >= count {
			return true
		}
	}
	return false
}

// attached counts the replicas that acknowledge: both the primary and the
// replicas themselves must say so.
func (d *decision) attached(primary core.Report, name string) int {
	n := 0
	others(d.Observation, name, func(in *core.Instance) {
		r, ok := serving(in)
		if ok && streams(r, name) && r.Server.SemiSync.ReplicaEnabled && !slices.Contains(d.Status.Diverged, in.Name) {
			n++
		}
	})
	if primary.Server.SemiSync.SourceEnabled {
		n = min(n, primary.Server.SemiSync.Clients)
	}
	return n
}

func (d *decision) tellDurable(s core.SemiSync, applied, wished int) {
	switch {
	case wished == 0:
	case applied > 0 && !s.SourceActive:
		d.Status.Durable, d.Status.DurableMessage = core.DurableNo,
			"semi-synchronous replication fell back to asynchronous, because replicas did not acknowledge in time: an acknowledged write may exist on the primary alone"
	case applied < wished:
		d.Status.Durable, d.Status.DurableMessage = core.DurableNo,
			fmt.Sprintf("a commit waits for %d of %d wished acknowledgements", applied, wished)
	default:
		d.Status.Durable, d.Status.DurableMessage = core.DurableYes, fmt.Sprintf("a commit waits for %d acknowledgements", applied)
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
	mayLabel := takesWrites && !d.isRouting()
	if routed, known := d.Cluster.Routed.Get(); known && takesWrites && routed != p.Instance {
		d.Do(core.RouteWrites{Instance: p.Instance})
	}
	for i := range d.Instances {
		in := &d.Instances[i]
		pod, podKnown := in.Pod.Get()
		r, known := in.Report.Get()
		if !podKnown || !pod.Exists || pod.Terminating || !known || d.IsEnding(in.Name) {
			continue
		}
		if pod.DemoteRequested && takesWrites && in.Name != p.Instance {
			d.Do(core.ClearDemote{Instance: in.Name})
		}
		// Labels move endpoints, and kube-proxy holds a second change back for
		// a second: until -rw leads to the one who takes writes, the next change is -rw's.
		if !mayLabel && !slices.Contains(d.Status.Diverged, in.Name) && !d.IsFenced(in.Name) && !d.mustReadHere(in, pod, r) {
			continue
		}
		role := core.LabelPod{Instance: in.Name, Role: "replica"}
		switch {
		case in.Name == p.Instance && takesWrites:
			role.Role = "primary"
		case !takesWrites: // it is what it was until another is writable
			role.Role = pod.Role
		}
		role.Routable = d.routable(in, r)
		if role.Role != "" && (pod.Role != role.Role || pod.Routable != role.Routable) {
			d.Do(role)
		}
	}
}

// isRouting: -rw has just been led to a new primary.
func (d *decision) isRouting() bool {
	p := d.Status.Promotion
	return p.From != "" && d.HoldsLabels(p.WritableSince)
}

func (d *decision) routable(in *core.Instance, r core.Report) bool {
	if _, ok := serving(in); !ok || slices.Contains(d.Status.Diverged, in.Name) {
		return false
	}
	if in.Name == d.Status.Promotion.Instance {
		return true
	}
	if r.Lagging && !d.lastReader(in.Name) {
		d.Say(in.Name + " lags more than spec.readRouting.maxReplicationLag allows, and takes no reads")
		return false
	}
	return r.Server.Replication != nil
}

// mustReadHere: a replica that was left out because it lags is the best there is.
func (d *decision) mustReadHere(in *core.Instance, pod core.Pod, r core.Report) bool {
	return r.Lagging && !pod.Routable && d.lastReader(in.Name)
}

// lastReader: no other instance serves reads that are fresh enough.
func (d *decision) lastReader(name string) bool {
	last := true
	others(d.Observation, name, func(in *core.Instance) {
		r, ok := serving(in)
		isPrimary := in.Name == d.Status.Promotion.Instance && d.takesWrites()
		if ok && !slices.Contains(d.Status.Diverged, in.Name) && (isPrimary || r.Server.Replication != nil && !r.Lagging) {
			last = false
		}
	})
	return last
}
