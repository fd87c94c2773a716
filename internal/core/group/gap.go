package group

import (
	"fmt"
	"slices"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
	"cnmsql.co/internal/gtid"
)

// goOn are the survivors who go on when lead does: those whom it reaches, and itself.
func goOn(lead *core.Instance, survivors []*core.Instance) (out []*core.Instance) {
	v, _ := viewOf(lead)
	for _, in := range survivors {
		if in == lead || reaches(v, in.Name) {
			out = append(out, in)
		}
	}
	return out
}

// knownGap tells what is known to have been in the group and is missing where lead goes on; ""
// when nothing is. A member that was cut off alone, and expelled, still calls itself one of a
// group that has lost its majority, and the primary, when the others have gone on without it.
func (d *decision) knownGap(lead *core.Instance, survivors []*core.Instance) string {
	var gaps []string
	if lacks := d.Plan.Carried.Held.Subtract(draft.Held(goOn(lead, survivors))); !lacks.IsEmpty() {
		gaps = append(gaps, "lacks "+lacks.Abbreviate(4)+", which was seen in the group")
	}
	if v, _ := viewOf(lead); core.IsLaterView(d.g.ViewID, v.ViewID) {
		gaps = append(gaps, fmt.Sprintf("is in view %s, older than %s, the last view that was seen", v.ViewID,
			d.g.ViewID))
	}
	return d.gap(lead, gaps)
}

// gap puts in words what is missing where lead goes on: gaps, and what those hold who are excluded; "" when nothing
// is known to be.
func (d *decision) gap(lead *core.Instance, gaps []string) string {
	if excess := d.heldByExcluded(lead); excess != "" {
		gaps = append(gaps, excess)
	}
	if len(gaps) == 0 {
		return ""
	}
	return fmt.Sprintf("%s, which would lead the group, %s; the last primary that was seen is %s", lead.Name,
		strings.Join(gaps, ", and "), d.g.Primary)
}

// heldByExcluded tells what instances hold and lead lacks that the group went on without; "" where they hold
// nothing of the kind. The group may have taken one back while nobody was heard, and have acknowledged that. What
// has diverged from the group that was seen never was that group's.
func (d *decision) heldByExcluded(lead *core.Instance) string {
	held, theirs, names := draft.Held([]*core.Instance{lead}), gtid.Set{}, []string(nil)
	for i := range d.Instances {
		in := &d.Instances[i]
		r, known := in.Report.Get()
		if !known || r.Server == nil || r.Data != core.DataPopulated || !d.g.Excludes(in.Name) ||
			slices.Contains(d.Status.Diverged, in.Name) {
			continue
		}
		if more := r.Server.Holds().Subtract(held); in != lead && !more.IsEmpty() {
			theirs, names = theirs.Union(more), append(names, in.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("lacks %s, which %s. An earlier recovery excluded %s; the group may have taken %[3]s back "+
		"since, and clients may have been told that these transactions committed", theirs.Abbreviate(4),
		agree(names, "holds", "hold"), strings.Join(names, ", "))
}

// accepts reports whether a human has said that what the instance lacks may be
// lost, and in this epoch.
func (d *decision) accepts(lead *core.Instance) bool {
	word := core.Override{To: lead.Name, Epoch: d.Cluster.Status.Epoch}
	return d.Cluster.Override != nil && *d.Cluster.Override == word
}

func (d *decision) refuseGap(r *recovery) {
	d.Plan.Gap = r.gap
	stay := goOn(r.leader, r.survivors)
	others := d.named(func(in *core.Instance) bool { return !slices.Contains(stay, in) })
	d.refuseLoss(r.leader, fmt.Sprintf("%s. Bring back %s; or, if what they hold is gone for good and may be lost",
		r.gap, strings.Join(others, ", ")))
}

// refuseRebootGap refuses the same of a reboot. All are heard then, so that there is nobody to bring back.
func (d *decision) refuseRebootGap(r *recovery) {
	d.refuseLoss(r.lead, r.gap+". Check these transactions, and save what you need; then, if they may be lost")
}

func (d *decision) refuseLoss(lead *core.Instance, why string) {
	why = fmt.Sprintf("%s: %s --accept-data-loss", why, d.askForIt())
	if word := d.Cluster.Override; word != nil {
		why += fmt.Sprintf(". The annotation cnmsql.cnmsql.co/accept-data-loss names %s, but must name %s@%d", word,
			lead.Name, d.Cluster.Status.Epoch)
	}
	d.refuseAbout(core.RefusalNoSafeSurvivor, lead.Name, why)
}

// clearWord takes a human's word off, and with it what it accepts.
func (d *decision) clearWord() {
	d.Do(core.ClearForceQuorum{})
	if d.Cluster.Override != nil {
		d.Do(core.ClearOverride{})
	}
}

// dropOverride takes back what a human accepted when there is no request to go on.
// Without one there is nothing that could be accepted, and one that is made later in this
// epoch must not find it.
func (d *decision) dropOverride() {
	if d.isAdopting() { // it may name the one to go on with
		return
	}
	word := d.Cluster.Override
	if word == nil || d.Cluster.Group.ForceQuorum {
		return
	}
	d.Do(core.ClearOverride{})
	if !d.isAnswered(word) {
		d.Warn(core.RefusalOverride, "the annotation accept-data-loss was refused, because the annotation "+
			"cnmsql.cnmsql.co/force-quorum-recovery, which requests the recovery, is missing. To set both: "+
			d.askForIt()+" --accept-data-loss")
	}
}

// isAnswered reports whether the request that the word came with was carried out or refused, and the word is
// only not taken off yet.
func (d *decision) isAnswered(word *core.Override) bool {
	return slices.ContainsFunc(d.g.Recoveries, func(r core.GroupRecovery) bool {
		return r.Epoch == word.Epoch || r.Epoch == word.Epoch+1
	}) || slices.ContainsFunc(d.Cluster.Status.Notices, func(n core.Notice) bool {
		return slices.Contains(core.RecoveryRefusals(), n.Reason)
	})
}
