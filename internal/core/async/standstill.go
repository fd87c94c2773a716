package async

import (
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// It is looked at every core.LookAgain meanwhile, which is often enough for either.
const (
	// unreachedPatience is how long nobody may know whether there is a primary that takes writes
	// before a human is asked: a container that is started again answers sooner.
	unreachedPatience = 15 * time.Second
	// inPlacePatience is the same for a mysqld that is started again in place.
	inPlacePatience = 2 * time.Minute
)

// leaveAlone changes nothing when what is known of the primary is no reason to replace it. When
// nobody can be asked about it, only somebody outside can help, and after some time it says so.
func (d *decision) leaveAlone() {
	p := d.Status.Promotion
	d.Doing("the primary " + p.Instance + ": " + d.diagnosis.says + "; that is no reason to replace it" +
		besides(d.holder()))
	if d.diagnosis.name != core.PrimaryUnreachable || d.Cluster.Problem != nil {
		return
	}
	d.Plan.Carried.Unknown = d.Observation.Carried.Unknown.Or(p.Epoch, d.Now)
	until := d.Plan.Carried.Unknown.At.Add(unreachedPatience)
	was := d.Cluster.Status.Blocked
	if d.Now.Before(until) && (was == nil || was.Reason != core.RefusalUnreachable) {
		return
	}
	d.Block(core.RefusalUnreachable, d.unreached())
}

func (d *decision) unreached() string {
	holder := d.holder()
	witness := "and no replica can be asked whether it takes writes"
	if len(d.Instances) == 1 {
		witness = "and there is no replica"
	}
	advice := "Look at its Pod and at its node: kubectl describe pod " + holder.Name
	if why := problemOf(holder); why != "" {
		advice = "Fix what hinders it: " + why
	}
	return fmt.Sprintf("the manager of the primary %s cannot be reached%s, %s: it may still take writes, so the "+
		"operator changes nothing. %s", holder.Name, holder.WhyUnheard(), witness, advice)
}

// blockRestarts tells, after a while, that starting mysqld in place, which is all that can be done,
// does not help. It is tried again all the same.
func (d *decision) blockRestarts(r core.Report) {
	told := core.Notice{Reason: core.ReasonRestartInPlace, Subject: r.Instance}
	before, since := slices.IndexFunc(d.Cluster.Status.Notices, told.Is), d.Now
	if before >= 0 {
		since = d.Cluster.Status.Notices[before].Since
	}
	if r.Reason != core.InstanceCrashLoop && d.Now.Before(since.Add(inPlacePatience)) {
		return
	}
	d.Block(core.RefusalRestart, fmt.Sprintf("starting mysqld of %s in place does not help: %s. See why it ends: "+
		"kubectl logs %s", r.Instance, r.Problem().String(), r.Instance))
}

// besides is what hinders an instance, to be told beside what is waited for.
func besides(in *core.Instance) string {
	why := problemOf(in)
	if why == "" {
		return ""
	}
	return "; " + why
}
