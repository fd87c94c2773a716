package async

import (
	"cmp"
	"fmt"
	"time"

	"cnmsql.co/internal/core"
)

// A primary that follows an external server is the primary in all but that it takes no writes: one at most
// follows in an epoch, the others replicate from it, and another is promoted by the same proofs. So the cluster
// is whole when it takes over. No commit is acknowledged meanwhile, so that none waits for replicas.

// followsServer reports whether the primary follows an external server.
func (d *decision) followsServer() bool { return d.Status.Promotion.FollowsServer() }

// followsNext is the external server that whoever is promoted next follows, by this proof: the one that the primary
// follows now. The first primary follows the one that the user wishes. A human who accepts a loss of data need not
// wait for what is missing of the server where it is to be followed no more.
func (d *decision) followsNext(proof core.Proof) string {
	switch p := d.Status.Promotion; {
	case p == nil, p.FollowsServer() && proof == core.ProofAcceptedLoss:
		return d.Cluster.Follows
	default:
		return p.Follows
	}
}

// leaveDurability has commits wait for nobody while the primary follows an external server, whatever the user
// asked for: that counts when it takes over.
func (d *decision) leaveDurability() {
	if d.asked = d.Cluster.Durability; d.followsServer() {
		d.Cluster.Durability = core.Durability{Mode: core.DurabilityAsync}
	}
}

// serves is what a primary does that is well.
func serves(p *core.Promotion) string {
	if p.FollowsServer() {
		return "follows " + p.Follows + ", and takes no writes"
	}
	return "takes writes"
}

// notFollowing tells why a primary that is well does not receive from the external server, or does not apply what
// that sends; "" when it does, and where nobody follows one.
func (d *decision) notFollowing() string {
	if !d.followsServer() || d.diagnosis.name != core.PrimaryHealthy {
		return ""
	}
	r, _ := serving(d.holder())
	switch r.Reason {
	case core.InstanceSourceUnknown, core.InstanceSourceUnreached, core.InstanceSourceRefused:
		return d.Status.Promotion.Instance + " " + r.Message
	}
	return ""
}

// tellNotFollowing tells that the external server is not followed. Nobody is promoted for that: another would fare
// no better. Where the primary is to take over, that is refused with the same words.
func (d *decision) tellNotFollowing() {
	if why := d.notFollowing(); why != "" && !d.isToTakeOver() {
		d.Announce(true, core.ReasonNotFollowing, d.Status.Promotion.Follows, why)
	}
}

// isToTakeOver reports whether the user wishes that the primary takes writes, and it follows an external server yet.
func (d *decision) isToTakeOver() bool { return d.followsServer() && d.Cluster.Follows == "" }

// takeOver has the primary take writes once that is wished and nothing of the external server is missing. It reports
// whether it did.
func (d *decision) takeOver() bool {
	if !d.isToTakeOver() || d.Status.Operation != nil || d.diagnosis.name != core.PrimaryHealthy {
		return false
	}
	r, ok := serving(d.holder())
	switch {
	case !ok:
		return false
	case !isOf(r, d.holder()): // what it holds goes with its Pod
		d.Doing(fmt.Sprintf("%s takes over when its present Pod answers, and neither that Pod nor its volume is "+
			"being deleted, or another instance follows %s", d.Status.Promotion.Instance, d.Status.Promotion.Follows))
		return false
	case d.awaitServer(r), d.awaitCopies(r):
		return false
	}
	d.tellTakesOver(r)
	d.openHolder(r, proven{proof: core.ProofTakenOver, evidence: fmt.Sprintf("it followed %s, and holds all that that "+
		"had executed", d.Status.Promotion.Follows)})
	d.Doing(d.Status.Promotion.Instance + " is made writable")
	return true
}

// awaitServer tells what is waited for while the external server has, or may have, executed what the primary does not
// hold, and returns whether it is. Nothing was changed yet: to wait costs nothing, and the wish can be taken back.
func (d *decision) awaitServer(r core.Report) bool {
	p, from := d.Status.Promotion, r.Source
	missing, known := r.MissingOfSource()
	const back = "To go on following it, set spec.replica.enabled: true again"
	isOld := !known || from.Generation < d.Cluster.Generation || d.isElsewhere(from)
	switch why := d.notFollowing(); {
	case from == nil || from.Name != p.Follows || from.Problem == "" && isOld:
		d.Doing(fmt.Sprintf("%s is to take over: it asks %s which transactions that server has executed", p.Instance,
			p.Follows))
	case from.Problem != "" || why != "":
		d.Block(core.RefusalTakeOver, fmt.Sprintf("%s is to take over, but it is not known whether it has all that "+
			"%s has executed: %s. Fix that. %s. %s", p.Instance, p.Follows, cmp.Or(from.Problem, why), back,
			d.withoutServer(r)))
	case !missing.IsEmpty():
		d.Doing(fmt.Sprintf("%s takes over when it has all that %s has executed; it lacks %s%s. %s",
			p.Instance, p.Follows, core.Plural(missing.Count(), "transaction"), stillWritten(from), back))
	default:
		return false
	}
	d.lookForTakeOver()
	return true
}

// isElsewhere reports whether the server was asked at another address than the user says: what tells the instance of
// that reaches it later than the wish. Another server may answer there, which lacks what this one has.
func (d *decision) isElsewhere(from *core.Source) bool {
	return d.Cluster.SourceAddress != "" && d.Cluster.SourceAddress != from.Address
}

// withoutServer tells how the cluster takes over from an external server that is gone for good.
func (d *decision) withoutServer(r core.Report) string {
	p := d.Status.Promotion
	if name, _ := d.holdsMore(r); name != "" {
		return fmt.Sprintf("If %s is gone for good, first make %s primary, because it holds transactions that %s "+
			"lacks: kubectl cnmsql promote %s %[2]s", p.Follows, name, p.Instance, d.Cluster.Name)
	}
	return fmt.Sprintf("If %s is gone for good: kubectl cnmsql failover %s --to %s --accept-data-loss", p.Follows,
		d.Cluster.Name, p.Instance)
}

// lookForTakeOver looks again soon: what instances hold is no news that would have it looked at by itself.
func (d *decision) lookForTakeOver() { d.RecheckAt(d.Now.Add(time.Second)) }

func stillWritten(s *core.Source) string {
	if s.Writable {
		return "; " + s.Name + " still takes writes: stop the application, or set super_read_only there"
	}
	return ""
}

// awaitCopies does so while another instance holds more than the primary, or fewer replicas hold all that the primary
// holds than its first commit is to wait for: what the external server has acknowledged is to outlive the primary, too.
func (d *decision) awaitCopies(r core.Report) bool {
	if name, _ := d.holdsMore(r); name != "" {
		d.Block(core.RefusalTakeOver, fmt.Sprintf("%s cannot take over: %s holds transactions that it lacks. To let "+
			"%[2]s take over instead: kubectl cnmsql promote %s %[2]s", d.Status.Promotion.Instance, name,
			d.Cluster.Name))
		return true
	}
	need, have := d.firstAcks(), d.replicasWith(r.Server.Holds())
	if have >= need {
		return false
	}
	d.Doing(fmt.Sprintf("%s takes over when %s all its transactions; now %d do", d.Status.Promotion.Instance,
		hold(need), have))
	d.lookForTakeOver()
	return true
}

func hold(n int) string {
	if n == 1 {
		return "1 replica holds"
	}
	return core.Plural(n, "replica") + " hold"
}

// firstAcks is the number of acknowledgements that the first commit waits for when the cluster takes over.
func (d *decision) firstAcks() int {
	n := d.members()
	return d.asked.AtPromotion(n, d.asked.Wished(n))
}

func (d *decision) tellTakesOver(r core.Report) {
	p := d.Status.Promotion
	text := fmt.Sprintf("%s takes writes from now on, and no longer follows %s: it has all that %[2]s had executed",
		p.Instance, p.Follows)
	if r.Source.Writable {
		text += fmt.Sprintf(". %s still takes writes: what is written there from now on is not in this Cluster. Stop "+
			"its clients, or set super_read_only there", p.Follows)
	}
	d.Tell(core.ReasonTakesOver, text)
}

// openHolder promotes the primary into the next epoch, in which it takes writes. Nobody else is the primary in the
// present one, so that no proof is needed.
func (d *decision) openHolder(r core.Report, because proven) {
	acks := d.firstAcks()
	p := d.Status.Promotion
	d.Cluster.Durability = d.asked
	d.Status.Epoch = max(d.nextEpoch(), d.ordersRefusedBelow(""))
	p.Epoch, p.Follows, p.From = d.Status.Epoch, "", p.Instance
	p.Proof, p.Evidence = because.proof, because.evidence
	p.GrantedAt, p.WritableSince = d.Now, time.Time{}
	p.RequiredGTID, p.RequiredAcks, p.AcksOrder, p.OrderedAcks = r.Server.Holds(), acks, 0, 0
	p.LosslessSince = d.losslessSince(acks)
	d.diagnosis = finding{core.PrimaryPromoting, "it is being made writable"}
	d.Again = true
}

// takeOverAnyway has the primary take writes although the external server may have executed more, for a human chose
// that.
func (d *decision) takeOverAnyway() {
	r, ok := serving(d.holder())
	if !ok || r.Server.Replication != nil && r.Server.Replication.SQLError != "" {
		d.RefuseOverride(d.Status.Promotion.Instance + " cannot take over: its mysqld does not answer, or has not " +
			"applied all that it has received; see kubectl cnmsql status")
		return
	}
	p := d.Status.Promotion
	d.Warn(core.ReasonOverride, fmt.Sprintf("%s takes writes because a human decided so, and no longer follows %s: "+
		"transactions of %[2]s that %[1]s lacks are lost to this Cluster", p.Instance, p.Follows))
	d.openHolder(r, proven{proof: core.ProofAcceptedLoss, evidence: "a human accepted the loss of writes that only " +
		p.Follows + " holds"})
	d.Do(core.ClearOverride{})
	d.Doing(p.Instance + " is made writable")
}
