package draft

import (
	"fmt"
	"slices"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// adopted is an instance on an adopted volume that has data.
type adopted struct {
	in     *core.Instance
	report core.Report
	holds  gtid.Set
}

// ChooseAdopted returns on whose volume a Cluster begins that goes on with those of a deleted one: who
// holds all that the others hold, and is of the history in which their group went on last. All of them must
// be heard, for each may hold writes that no other has. Those of another history are removed before,
// with their volumes kept: what stands there under the numbers of the others may be something else. It is nil
// until that is so, and while something hinders the Cluster; accepted tells whether a human named the one. others
// hold what it lacks.
func (d *Draft) ChooseAdopted(lacks func(core.Report) bool) (lead *core.Instance, accepted bool, others []string) {
	if d.Cluster.Problem != nil || d.IsBlocked() {
		return nil, false, nil
	}
	all, unheard := d.adoptedVolumes()
	if unheard != "" {
		if d.Cluster.Override != nil { // it was given for what is known now
			d.RefuseOverride("it is not known yet what " + unheard + " holds, whose volume is adopted. When all " +
				"instances answer, name the one to promote, if that is still needed")
		}
		d.Doing("waiting for " + unheard + ", whose volume is adopted, to report what it holds; if it is gone for " +
			"good, delete its PersistentVolumeClaim, then its Pod")
		return nil, false, nil
	}
	if len(all) == 0 {
		d.refuseUnnamed(all)
		d.Block(core.RefusalAdoption, "none of the adopted volumes has data: delete this Cluster and its "+
			"PersistentVolumeClaims, and create it without the annotation cnmsql.cnmsql.co/adopt-volumes")
		return nil, false, nil
	}
	first := d.namedAdopted(all)
	accepted = first >= 0
	if !accepted {
		d.refuseUnnamed(all)
		first = d.electAdopted(all, lacks)
	}
	if first < 0 || d.setAside(all, all[first]) {
		return nil, false, nil
	}
	if accepted {
		d.Do(core.ClearOverride{})
	}
	lead = all[first].in
	for _, v := range all {
		if !all[first].holds.Contains(v.holds) {
			others = append(others, v.in.Name)
		}
	}
	return lead, accepted, others
}

// adoptedVolumes are those of them that have data, and unheard names one of which it is not known what it
// holds, or that takes writes; "" when there is none.
func (d *Draft) adoptedVolumes() (all []adopted, unheard string) {
	for _, name := range d.Status.InstanceNames {
		in := d.Instance(name)
		if in == nil {
			return nil, name
		}
		if in.SaysEmpty() {
			continue
		}
		r, serves := in.Serving()
		if !serves || !r.IsEligible() || r.WritableEpoch != 0 || r.Server.HasView() && r.Server.Group.IsMember() {
			return nil, name
		}
		all = append(all, adopted{in: in, report: r, holds: r.Server.Holds()})
	}
	return all, ""
}

// electAdopted is where the one is on whose volume the Cluster begins without a human's word; -1 where none is.
func (d *Draft) electAdopted(all []adopted, lacks func(core.Report) bool) int {
	var of []core.Lineage
	var together gtid.Set
	for _, v := range all {
		of, together = append(of, v.report.Former), together.Union(v.holds)
	}
	latest, known := core.Latest(of)
	if !known {
		d.Block(core.RefusalLineage, "the adopted volumes do not show whether their group excluded some of them, so "+
			"the same GTIDs may name different transactions: "+lineageText(all)+". Decide which "+
			"copy is right: "+d.acceptAdopted()+"; new instances are cloned from it, and the volumes of the others "+
			"are kept")
		return -1
	}
	first := slices.IndexFunc(all, func(v adopted) bool {
		return v.report.Former == latest && v.holds.Contains(together)
	})
	if first < 0 {
		d.Block(core.RefusalIncomparable, d.differText(all, latest))
		return -1
	}
	// How many acknowledged each write is not known of a Cluster that is gone.
	if i := slices.IndexFunc(all, func(v adopted) bool { return lacks(v.report) }); i >= 0 {
		d.Block(core.RefusalTooFewKnown, fmt.Sprintf("%s %s. An acknowledged write may be missing, unless the last "+
			"primary is among the adopted volumes: %s promotes the one that you name", all[i].in.Name,
			MayLackText, d.acceptAdopted()))
		return -1
	}
	return first
}

func (d *Draft) acceptAdopted() string {
	return fmt.Sprintf("kubectl annotate cluster %s cnmsql.cnmsql.co/accept-data-loss=INSTANCE@0", d.Cluster.Name)
}

// setAside removes those whose data are not known to be of the same history as the lead's, and reports whether
// there are any.
func (d *Draft) setAside(all []adopted, lead adopted) bool {
	of := lead.report.Former
	var names []string
	for _, v := range all {
		isSame := v.report.Former == of && (of.Group == "" || of.Recovery > 0)
		if v.in == lead.in || isSame {
			continue
		}
		names = append(names, v.in.Name)
		if !isKnown(v.in) {
			continue // until then
		}
		d.Do(core.DeleteInstance{Instance: v.in.Name, Owned: v.in.Owned(), KeepVolume: true,
			Reason: core.ReasonVolumesAdopted})
		d.Warn(core.ReasonInstanceRemoved, "removing "+v.in.Name+": the group of the deleted Cluster excluded it, or "+
			"may have, so the same GTIDs may name other transactions there. Its PersistentVolumeClaim is kept; the "+
			"operator clones another instance")
		d.Forget(v.in.Name)
	}
	if len(names) > 0 {
		d.Doing("removing " + strings.Join(names, ", ") + ", whose history may differ from that of " + lead.in.Name)
	}
	return len(names) > 0
}

// namedAdopted is where the one is that a human accepts a loss for; -1 without such a word, or
// when it is none of these.
func (d *Draft) namedAdopted(all []adopted) int {
	wish := d.Cluster.Override
	if wish == nil || wish.Epoch != 0 {
		return -1
	}
	return slices.IndexFunc(all, func(v adopted) bool { return v.in.Name == wish.To })
}

// refuseUnnamed takes back a word that names none of these.
func (d *Draft) refuseUnnamed(all []adopted) {
	switch wish := d.Cluster.Override; {
	case wish == nil || d.namedAdopted(all) >= 0:
	case wish.Epoch != 0:
		d.RefuseOverride("before there is a primary it must name an instance at epoch 0, as " + d.Cluster.Name + "-1@0")
	default:
		d.RefuseOverride(wish.To + " has no data that was adopted")
	}
}

// RefuseOverride takes back a loss that was accepted, and tells why.
func (d *Draft) RefuseOverride(why string) {
	d.Warn(core.RefusalOverride, "the annotation accept-data-loss was refused: "+why)
	d.Do(core.ClearOverride{})
}

// differText tells what each holds that not all others hold, or that those who hold all are of an earlier history.
func (d *Draft) differText(all []adopted, latest core.Lineage) string {
	text := "none of the adopted volumes holds all that the others hold: " + OwnText(holdings(all))
	if latest.Recovery > core.FirstEpoch {
		text = "none of the adopted volumes that the group of the deleted Cluster had last holds all that the others " +
			"hold: " + OwnText(holdings(all)) + "; " + lineageText(all)
	}
	return text + ". Nothing is promoted until you decide which copy is right: " + d.acceptAdopted() +
		"; the data of the others are kept"
}

func holdings(all []adopted) (out []Holding) {
	for _, v := range all {
		out = append(out, Holding{Name: v.in.Name, Holds: v.holds})
	}
	return out
}

// lineageText tells in which epoch of the deleted Cluster each was last in the group.
func lineageText(all []adopted) string {
	var text []string
	for _, v := range all {
		switch of := v.report.Former; {
		case of.Group == "":
			text = append(text, v.in.Name+" was in no group")
		case of.Doubted:
			text = append(text, fmt.Sprintf("%s saw its group %s continue without a majority, in an unknown recovery",
				v.in.Name, of.Group))
		case of.Recovery == 0:
			text = append(text, fmt.Sprintf("%s was in the group %s, and nothing more is known", v.in.Name, of.Group))
		case of.Recovery == core.FirstEpoch:
			text = append(text, fmt.Sprintf("%s was in the group %s before any recovery", v.in.Name, of.Group))
		default:
			text = append(text, fmt.Sprintf("%s was in the group %s after its recovery in epoch %d", v.in.Name,
				of.Group, of.Recovery))
		}
	}
	return strings.Join(text, "; ")
}
