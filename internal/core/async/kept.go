package async

import (
	"fmt"
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// chooseAdopted promotes one of those whose volumes were kept of a deleted Cluster: who
// holds all that the others hold. All of them must be heard, for each may hold writes that
// no other has. From then on the cluster counts as one that had a primary.
func (d *decision) chooseAdopted() {
	if d.Cluster.Problem != nil || d.IsBlocked() {
		return
	}
	all, unheard := d.adopted()
	if unheard != "" {
		if d.Cluster.Override != nil { // it was given for what is known now
			d.refuseOverride("it is not known yet what " + unheard + " holds, whose volume is adopted. When all " +
				"are heard, name the one to promote, if you still have to")
		}
		d.Doing("waiting to hear what " + unheard + " holds, whose volume is adopted; if it is gone for good, " +
			"delete its PersistentVolumeClaim, then its Pod")
		return
	}
	if len(all) == 0 {
		d.namedAdopted(all)
		d.Block(core.RefusalAdoption, "none of the adopted volumes has data: delete this Cluster and its "+
			"PersistentVolumeClaims, and create it without the annotation cnmsql.cnmsql.co/adopt-volumes")
		return
	}
	first := slices.IndexFunc(all, func(v voter) bool { return dominates(v, all) })
	because := proven{proof: core.ProofAdopted, evidence: fmt.Sprintf("the Cluster of UID %s was deleted; all whose "+
		"volumes were kept are heard, and none takes writes", d.Status.AdoptedFrom)}
	if named := d.namedAdopted(all); named >= 0 {
		first = named
		name := all[named].in.Name
		because = proven{proof: core.ProofAcceptedLoss, evidence: "a human accepted that writes which " + name +
			" does not hold are lost"}
		d.Warn(core.ReasonOverride, name+" is promoted on a human's word; what it does not hold stays on the "+
			"volumes of the others")
	}
	if first < 0 {
		d.Block(core.RefusalIncomparable, differText(d.Cluster.Name, all))
		return
	}
	// How many acknowledged each write is not known of a Cluster that is gone.
	if lacking := lackingAmong(all); lacking != "" && because.proof == core.ProofAdopted {
		d.Block(core.RefusalTooFewKnown, fmt.Sprintf("%s %s. An acknowledged write may be missing, "+
			"unless the last primary is among the adopted volumes: "+
			"kubectl annotate cluster %s cnmsql.cnmsql.co/accept-data-loss=INSTANCE@0 promotes the one that you name",
			lacking, mayLackText, d.Cluster.Name))
		return
	}
	winner := all[first]
	for _, v := range all {
		if !winner.holds.Contains(v.holds) {
			d.Status.Diverged = append(draft.Without(d.Status.Diverged, v.in.Name), v.in.Name)
		}
	}
	d.grant(winner.elected(), because, 0)
	d.Status.EstablishedAt = d.Now
	d.Doing("promoting " + winner.in.Name)
}

// adopted are those of them that have data, and unheard names one of which it is not known what it
// holds, or that takes writes; "" when there is none.
func (d *decision) adopted() (all []voter, unheard string) {
	for _, name := range d.Status.InstanceNames {
		in := d.Instance(name)
		if in == nil {
			return nil, name
		}
		if in.SaysEmpty() {
			continue
		}
		r, serves := serving(in)
		if !serves || !eligible(r) || r.WritableEpoch != 0 {
			return nil, name
		}
		all = append(all, voter{in: in, report: r, holds: r.Server.Holds(), lacks: d.mayLack(r)})
	}
	return all, ""
}

// namedAdopted is where the one is that a human accepts a loss for; -1 without such a word, or
// when it is none of these. The word is taken back either way.
func (d *decision) namedAdopted(all []voter) int {
	wish := d.Cluster.Override
	if wish == nil {
		return -1
	}
	d.Do(core.ClearOverride{})
	i := slices.IndexFunc(all, func(v voter) bool { return v.in.Name == wish.To })
	switch {
	case wish.Epoch != 0:
		d.Warn(core.RefusalOverride, "the accepted loss of data is not carried out: before there is a primary it "+
			"must name an instance at epoch 0, as "+d.Cluster.Name+"-1@0")
	case i < 0:
		d.Warn(core.RefusalOverride, "the accepted loss of data is not carried out: "+wish.To+
			" has no data that was adopted")
	default:
		return i
	}
	return -1
}

// differText tells what each holds that not all others hold.
func differText(cluster string, all []voter) string {
	return "none of the adopted volumes holds all that the others hold: " + ownText(all) +
		". Nothing is promoted until you decide which copy is right: " +
		fmt.Sprintf("kubectl annotate cluster %s cnmsql.cnmsql.co/accept-data-loss=INSTANCE@0; the others keep "+
			"theirs, and are told diverged", cluster)
}
