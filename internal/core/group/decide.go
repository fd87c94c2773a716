package group

import (
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// Decide says what to do about a cluster whose instances are members of a group. The group
// elects its own primary, so that the first passes take over what it says and the later ones
// act on it. Their order counts:
//
//   - names and AdoptVolumes come before pin, which makes no group beside data that exists.
//   - forgetNew comes before see, which counts nobody who is known never to have been a member.
//   - see counts the members' views. Every later pass asks it whether there is a quorum.
//   - pin comes before mirror: the name and the first epoch are written before any report of
//     a group is taken over.
//   - mirror follows the group's primary. It comes before judge and remember, which compare
//     what instances hold with that group's.
//   - fence comes before provision and reinit: a member that a human takes out is counted as
//     missing when they ask whether another can be spared.
//   - welcomeBack begins the epoch in which those that had to leave may join again, before
//     an order is given in an epoch that they refuse.
//   - switchOver acts on a group with a quorum and recoverQuorum on one without.
//   - join and route go by the primary and the members that all these have left.
//   - publish is last: it puts into words what the others have left.
func Decide(o core.Observation) core.Plan { return decide(&o).Plan }

func decide(o *core.Observation) *decision {
	d := newDecision(o)
	if o.Cluster.Deleting {
		return d
	}
	d.names()
	d.besideKept = d.AdoptVolumes()
	d.forgetNew()
	d.seen = see(o, d.g)
	d.pin()
	d.mirror()
	d.judge()
	d.remember()
	d.fence()
	d.welcomeBack()
	d.provision()
	d.reinit()
	d.switchOver()
	d.recoverQuorum()
	d.join()
	d.route()
	d.TellForeign()
	d.tellHindered()
	d.TellNearlyFull()
	d.TellParameters()
	d.TellTaintLeft()
	d.TellTokenRefused()
	d.tellWithoutEffect()
	d.tellCertificates()
	d.TellGivenUp()
	d.GrowVolumes()
	d.PruneServices()
	d.publish()
	return d
}

// decision is a draft, and what this topology knows beside it.
type decision struct {
	draft.Draft

	g    *core.GroupStatus // the one being decided; Status.Group
	seen verdict
	// besideKept tells whether it would be made beside the data of a deleted Cluster of its name.
	besideKept bool
	// took and tookBack are the rows of the tables of recovery that were taken.
	took     []*transition
	tookBack []*exclusionStep
}

func newDecision(o *core.Observation) *decision {
	d := &decision{Draft: draft.New(o), g: &core.GroupStatus{}}
	if g := o.Cluster.Status.Group; g != nil {
		*d.g = *g
	}
	d.Status.Group = d.g
	return d
}

// names keeps every instance that was ever made in status, until it is removed.
func (d *decision) names() {
	for i := range d.Instances {
		in := &d.Instances[i]
		if in.Exists() && !in.IsLeaving() && !d.HasKeptVolume(in.Name) &&
			!slices.Contains(d.Status.InstanceNames, in.Name) {
			d.Status.InstanceNames = append(d.Status.InstanceNames, in.Name)
			d.Status.LatestOrdinal = max(d.Status.LatestOrdinal, in.Ordinal)
		}
	}
}

// pin chooses, once, the group's name and who makes it. Whom somebody wishes as primary meanwhile is no
// matter: who has begun is the only one who can end.
func (d *decision) pin() {
	if d.g.Name == "" && !d.besideKept {
		d.g.Name = d.Cluster.Group.WishedName
		if not := d.Cluster.Group.NotTaken; not != "" {
			d.Tell(core.ReasonWithoutEffect, "spec.replication.groupReplication.groupName has no effect in a "+
				"Cluster that begins with existing data: "+not+" may be the name of its former group, which may still "+
				"run. This group is "+d.g.Name)
		}
	}
	if d.Status.Epoch == 0 {
		d.Status.Epoch = 1
	}
	switch {
	case d.g.Bootstrapped, d.g.Bootstrapper != "", d.seen.agreed, d.besideKept:
	case d.isAdopting():
		d.chooseAdopted()
	case !d.refuseSecondGroup():
		d.beginGroup(d.Cluster.Name+"-1", "")
	}
}

// beginGroup has an instance make the group; from is what it makes it from, "" for nothing.
func (d *decision) beginGroup(first, from string) {
	d.g.Bootstrapper = first
	if d.Status.TargetPrimary == "" {
		d.Status.TargetPrimary, d.Status.TargetPrimaryAt = first, d.Now
	}
	text := first + " is to make the group " + d.g.Name
	if from != "" {
		text += " " + from
	}
	d.Tell(core.ReasonGroupBootstrap, text)
	d.Again = true
}

// refuseSecondGroup has no group made where there may be data of one, although the Cluster says that there
// never was any, and tells what it waits for. It reports whether that is so. The Cluster's status was lost
// then, and a group that is made now would be a second one.
func (d *decision) refuseSecondGroup() bool {
	for i := range d.Instances {
		in := &d.Instances[i]
		r, known := in.Report.Get()
		vol, volKnown := in.Volume.Get()
		switch {
		case known && r.Data == core.DataPopulated:
			d.Block(core.RefusalDataWithoutStatus, in.Name+" holds data, but the Cluster's status says that there "+
				"never was a group: the operator makes none. Bring the members back, so that it takes over their "+
				"group, or restore the Cluster's status")
			return true
		case volKnown && !vol.Exists, in.SaysEmpty():
		default:
			d.Doing("waiting to hear from " + in.Name + " whether it holds data")
			return true
		}
	}
	return false
}
