package group

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// route points writes at the primary by its name, and labels the Pods by what the
// group says of them. Who is known not to be online is in no Service.
func (d *decision) route() {
	if routed, known := d.Cluster.Routed.Get(); known && d.seen.agreed && d.seen.primary != "" &&
		routed != d.seen.primary {
		d.Do(core.RouteWrites{Instance: d.seen.primary})
	}
	rests := false
	if until := d.LabelsRestUntil(d.Status.CurrentPrimaryAt); d.seen.agreed && !until.IsZero() {
		d.RecheckAt(until)
		rests = true
	}
	for i := range d.Instances {
		in := &d.Instances[i]
		pod, known := in.Pod.Get()
		if !known || !pod.Exists || pod.Terminating || d.IsEnding(in.Name) || rests && !d.IsFenced(in.Name) {
			continue
		}
		if pod.DemoteRequested && d.seen.agreed && d.seen.primary != "" && d.seen.primary != in.Name {
			d.Do(core.ClearDemote{Instance: in.Name})
		}
		label := core.LabelPod{Instance: in.Name, Role: pod.Role, Routable: pod.Routable}
		v, heard := viewOf(in)
		switch {
		case d.seen.agreed && d.seen.primary == "": // the next change of endpoints is -rw's
		case in.Name == d.seen.primary && d.seen.agreed:
			label.Role, label.Routable = "primary", d.serves(in.Name, v, heard)
		case d.seen.agreed:
			serves, lags := d.serves(in.Name, v, heard), in.Report.Is(func(r core.Report) bool { return r.Lagging })
			label.Role, label.Routable = "replica", serves && !lags
			if serves && lags {
				d.TellLags(in.Name)
			}
		case heard && v.State != core.MemberOnline:
			label.Routable = false
		}
		label.Routable = label.Routable && !d.IsFenced(in.Name)
		if label.Role != "" && (label.Role != pod.Role || label.Routable != pod.Routable) {
			d.Do(label)
		}
	}
}

// serves reports whether the member is online, as the group says, and as it says
// itself if it is heard.
func (d *decision) serves(name string, v *core.GroupView, heard bool) bool {
	return d.seen.isOnline(name) && (!heard || v.State == core.MemberOnline)
}

// tellWithoutEffect remarks what a user has written and a group does not do, for it is
// not ignored in silence.
func (d *decision) tellWithoutEffect() {
	if fields := d.Cluster.Group.WithoutEffect; len(fields) > 0 {
		d.Remark(core.ReasonWithoutEffect, strings.Join(fields, ","), "without effect in a group: "+
			strings.Join(fields, ", ")+" (the group elects its primary itself, and a commit waits for a majority of "+
			"the members and for nothing else); remove what you do not need")
	}
}

// publish puts the cluster's situation in words.
func (d *decision) publish() {
	slices.Sort(d.Status.InstanceNames)
	d.Status.Diagnosis = d.diagnosis()
	d.CountReady()
	d.Status.State = d.state()
	d.noteFailing()
	problem := d.problem()
	switch p := d.Cluster.Problem; {
	case d.isUnderWay(): // and has been said
	case d.g.Bootstrapped && !d.seen.agreed:
		d.blockLost()
	case p != nil:
		d.Block(p.Reason, p.Message)
	case problem != "" && !d.g.Bootstrapped:
		d.Block(core.RefusalProblem, problem)
	}
	d.Status.Phase = d.phase(problem)
	d.Conclude(problem, d.howItStands())
}

// noteFailing notes since when there has been nobody who takes writes.
func (d *decision) noteFailing() {
	switch {
	case d.Status.Diagnosis.TakesWrites() || d.Status.Diagnosis == core.DiagnosisNone:
		d.Status.FailingSince = time.Time{}
	case d.Status.FailingSince.IsZero():
		d.Status.FailingSince = d.Now
	}
}

// blockLost says what a human can do.
func (d *decision) blockLost() {
	all := true
	for i := range d.Instances {
		all = all && d.Instances[i].SaysEmpty()
	}
	switch {
	case all && len(d.Instances) > 0:
		d.Block(core.RefusalGroupWithoutData, "the group existed, but no instance has its data any more: restore a "+
			"backup into a new Cluster; this one is never initialised again")
	case d.seen.lost:
		d.lookAgain(nil)
		d.Block(core.RefusalQuorumLost, fmt.Sprintf("the group has lost its quorum (%s): writes wait. %s",
			d.situation(), d.wayOut()))
	default:
		d.lookAgain(nil)
		d.tellUnknown(fmt.Sprintf("too few members answer to tell whether the group has its quorum (%s): the "+
			"operator changes nothing%s", d.standing(), d.unknownAdvice()))
	}
}

// unknownPatience is how long it may be unknown how the group is before that is told. mysqld
// answers no question about its group while that changes, and a member that has just joined may be
// the one that is missing.
const unknownPatience = 3 * time.Second

// A quorum that was lost stays so until it is seen again.
func (d *decision) tellUnknown(why string) {
	d.Plan.Carried.Unknown = d.Observation.Carried.Unknown.Or(d.Status.Epoch, d.Now)
	until := d.Plan.Carried.Unknown.At.Add(unknownPatience)
	was := d.Cluster.Status
	toldLost := was.Phase == core.PhaseBlocked &&
		(was.Diagnosis == core.GroupQuorumLost || was.Diagnosis == core.GroupUnknown)
	if d.Now.Before(until) && !toldLost {
		d.Doing(why)
		d.RecheckAt(until)
		return
	}
	d.Block(core.RefusalGroupUnknown, why)
}

func (d *decision) diagnosis() core.Diagnosis {
	switch {
	case !d.g.Bootstrapped:
		return core.DiagnosisNone
	case d.hungPrimary() != "":
		return core.PrimaryHung
	case d.fullPrimary() != "":
		return core.PrimaryFull
	case d.seen.agreed && d.seen.primary != "":
		return core.PrimaryHealthy
	case d.seen.agreed:
		return core.GroupElecting
	case d.seen.lost:
		return core.GroupQuorumLost
	default:
		return core.GroupUnknown
	}
}

// fullPrimary tells, in its own words, of a primary whose commits wait for space; "" when they do not.
func (d *decision) fullPrimary() string {
	return d.primarySays(func(r core.Report) bool { return r.LacksSpace() })
}

// hungPrimary tells, in its manager's words, of a primary whose mysqld answers nobody, or whose volume
// completes no write; "" when it is not so. The others see it ONLINE as long as the group's own threads
// live in it.
func (d *decision) hungPrimary() string {
	return d.primarySays(func(r core.Report) bool { return r.State == core.Hung })
}

// primarySays returns what the group's primary says of itself when its report is such; "" when it is not,
// or is not known.
func (d *decision) primarySays(is func(core.Report) bool) string {
	in := d.Instance(d.seen.primary)
	if !d.seen.agreed || in == nil {
		return ""
	}
	if r, known := in.Report.Get(); known && is(r) {
		return r.Message
	}
	return ""
}

// tellHindered tells of a primary whose commits do not end.
func (d *decision) tellHindered() {
	if !d.g.Bootstrapped {
		return
	}
	if says := d.fullPrimary(); says != "" {
		d.TellFull(d.seen.primary, says)
	}
	if says := d.hungPrimary(); says != "" {
		d.Doing("commits on " + d.seen.primary + " hang: " + says)
	}
}

// state is the situation in MOCO's terms.
func (d *decision) state() core.ClusterState {
	switch {
	case !d.g.Bootstrapped:
		return d.Cluster.FirstState()
	case d.Status.Diagnosis == core.PrimaryFull, d.Status.Diagnosis == core.PrimaryHung:
		return core.StateIncomplete
	case d.seen.agreed && d.seen.primary != "" && d.seen.online == d.Cluster.Wanted &&
		len(d.Instances) == d.Cluster.Wanted && d.Status.Ready == len(d.Instances):
		return core.StateHealthy
	case d.seen.agreed && d.seen.primary != "":
		return core.StateDegraded
	case d.seen.agreed, !d.seen.lost:
		return core.StateIncomplete
	default:
		return core.StateWithoutPrimary(d.withData(), len(d.Instances)-1)
	}
}

// withData counts the instances beside the last primary that can be seen to have the group's data.
func (d *decision) withData() (n int) {
	for i := range d.Instances {
		in := &d.Instances[i]
		if _, serves := in.Serving(); serves && in.Name != d.Status.CurrentPrimary &&
			!slices.Contains(d.Status.Diverged, in.Name) {
			n++
		}
	}
	return n
}

func (d *decision) phase(problem string) core.Phase {
	switch {
	case d.IsBlocked():
		return core.PhaseBlocked
	case d.isUnderWay():
		return core.PhaseFailover
	case d.Status.Operation != nil:
		return core.PhaseSwitchover
	case !d.g.Bootstrapped:
		return core.PhaseProvisioning
	case d.Status.Diagnosis == core.GroupElecting:
		return core.PhaseFailover
	case !d.Status.Diagnosis.EndsCommits() || d.IsHeldUp():
		return core.PhaseDegraded // whatever else is going on
	case len(d.Instances) != d.Cluster.Wanted || d.IsJoining():
		return core.PhaseScaling
	case problem == "" && d.IsOutdated():
		return core.PhaseUpdating
	case d.Status.State == core.StateHealthy:
		return core.PhaseHealthy
	default:
		return core.PhaseDegraded
	}
}

// howItStands is what is told when there is nothing else to tell.
func (d *decision) howItStands() string {
	if d.Status.Phase == core.PhaseHealthy {
		return fmt.Sprintf("%s is the primary; all %d members are online", d.seen.primary, d.seen.online)
	}
	return "waiting for " + strings.Join(d.laggards(), ", ")
}

// laggards names the instances that are not where they should be.
func (d *decision) laggards() []string {
	var names []string
	for i := range d.Instances {
		in := &d.Instances[i]
		r, absence := draft.Answering(in)
		switch {
		case absence != "":
			names = append(names, in.Name+" ("+absence+")")
		case !d.seen.isOnline(in.Name) && r.Reason != "":
			names = append(names, fmt.Sprintf("%s (%s)", in.Name, r.Reason))
		case d.seen.agreed && !d.seen.isOnline(in.Name):
			names = append(names, fmt.Sprintf("%s (%s in the group)", in.Name, cmp.Or(d.seen.members[in.Name].State,
				core.MemberOffline)))
		case draft.Unready(in) != "":
			names = append(names, in.Name+" ("+draft.Unready(in)+")")
		}
	}
	switch {
	case len(names) > 0:
		return names
	case d.seen.agreed && d.seen.primary == "":
		return []string{"the group to elect a primary"}
	}
	return d.Outstanding()
}

// problem finds what hinders an instance, in the words of whoever knows.
func (d *decision) problem() string {
	for i := range d.Instances {
		in := &d.Instances[i]
		r, known := in.Report.Get()
		switch why := in.CannotRun(); {
		case known && r.Message != "" &&
			(r.State == core.Failed || r.Reason == core.MemberJoinFailed || r.Reason == core.RefusalDataWithoutStatus):
			return in.Name + ": " + r.Problem().String()
		case why != nil:
			return in.Name + ": " + why.String()
		}
	}
	if len(d.Status.Diverged) > 0 {
		return strings.Join(d.Status.Diverged, ", ") +
			": transactions that the group does not have; kept out of it and of every Service"
	}
	return ""
}
