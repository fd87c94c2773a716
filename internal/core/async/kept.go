package async

import (
	"fmt"
	"slices"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
	"cnmsql.co/internal/gtid"
)

// chooseAdopted promotes one of those whose volumes were kept of a deleted Cluster: who
// holds all that the others hold. All of them must be heard, for each may hold writes that
// no other has. From then on the cluster counts as one that had a primary.
func (d *decision) chooseAdopted() {
	if d.Cluster.Problem != nil || d.IsBlocked() {
		return
	}
	var all []*core.Instance
	for _, name := range d.Status.InstanceNames {
		in := d.Instance(name)
		if in == nil || !in.SaysEmpty() && !isAdoptable(in) {
			d.Doing("waiting to hear what " + name + " holds, whose volume is adopted; if it is gone for good, " +
				"delete its Pod and PersistentVolumeClaim")
			return
		}
		if !in.SaysEmpty() {
			all = append(all, in)
		}
	}
	if len(all) == 0 {
		d.Block(core.RefusalAdoption, "none of the adopted volumes has data: delete this Cluster and its "+
			"PersistentVolumeClaims, and create it without the annotation cnmsql.cnmsql.co/adopt-volumes")
		return
	}
	winner := draft.Dominating(all)
	because := proven{proof: core.ProofAdopted, evidence: fmt.Sprintf("the Cluster of UID %s was deleted; all whose "+
		"volumes were kept are heard, and none takes writes", d.Status.AdoptedFrom)}
	if named := d.namedAdopted(all); named != nil {
		winner = named
		because = proven{proof: core.ProofAcceptedLoss, evidence: "a human accepted that writes which " + named.Name +
			" does not hold are lost"}
		d.Warn(core.ReasonOverride, named.Name+" is promoted on a human's word; what it does not hold stays on the "+
			"volumes of the others")
	}
	if winner == nil {
		d.Block(core.RefusalIncomparable, differText(d.Cluster.Name, all))
		return
	}
	// How many acknowledged each write is not known of a Cluster that is gone.
	if lacking := lackingAmong(d.Observation, all); lacking != "" && because.proof == core.ProofAdopted {
		d.Block(core.RefusalTooFewKnown, fmt.Sprintf("%s %s. An acknowledged write may be missing, "+
			"unless the last primary is among the adopted volumes: "+
			"kubectl annotate cluster %s cnmsql.cnmsql.co/accept-data-loss=INSTANCE@0 promotes the one that you name",
			lacking, mayLackText, d.Cluster.Name))
		return
	}
	r, _ := winner.Report.Get()
	for _, in := range all {
		if other, _ := in.Report.Get(); !r.Server.Holds().Contains(other.Server.Holds()) {
			d.Status.Diverged = append(draft.Without(d.Status.Diverged, in.Name), in.Name)
		}
	}
	d.grant(election{winner: winner.Name, podUID: r.PodUID, node: r.Node, holds: r.Server.Holds()}, because, 0)
	d.Status.EstablishedAt = d.Now
	d.Doing("promoting " + winner.Name)
}

// isAdoptable reports whether the instance serves the data that it was given, and takes no writes.
func isAdoptable(in *core.Instance) bool {
	r, serves := serving(in)
	return serves && eligible(r) && r.WritableEpoch == 0
}

// namedAdopted is the instance that a human accepts a loss for; nil without such a word, or
// when it is none of these. The word is taken back either way.
func (d *decision) namedAdopted(all []*core.Instance) *core.Instance {
	wish := d.Cluster.Override
	if wish == nil {
		return nil
	}
	d.Do(core.ClearOverride{})
	i := slices.IndexFunc(all, func(in *core.Instance) bool { return in.Name == wish.To })
	switch {
	case wish.Epoch != 0:
		d.Warn(core.RefusalOverride, "the accepted loss of data is not carried out: before there is a primary it "+
			"must name an instance at epoch 0, as "+d.Cluster.Name+"-1@0")
	case i < 0:
		d.Warn(core.RefusalOverride, "the accepted loss of data is not carried out: "+wish.To+
			" has no data that was adopted")
	default:
		return all[i]
	}
	return nil
}

// differText tells what each holds that not all others hold.
func differText(cluster string, all []*core.Instance) string {
	var holds []string
	for _, in := range all {
		r, _ := in.Report.Get()
		own := gtid.Set{}
		for _, other := range all {
			if o, _ := other.Report.Get(); other != in {
				own = own.Union(r.Server.Holds().Subtract(o.Server.Holds()))
			}
		}
		if !own.IsEmpty() {
			holds = append(holds, in.Name+" holds "+own.Abbreviate(4))
		}
	}
	return "none of the adopted volumes holds all that the others hold: " + strings.Join(holds, "; ") +
		", which some other lacks. Nothing is promoted until you decide which copy is right: " +
		fmt.Sprintf("kubectl annotate cluster %s cnmsql.cnmsql.co/accept-data-loss=INSTANCE@0; the others keep "+
			"theirs, and are told diverged", cluster)
}
