package async

import (
	"fmt"
	"reflect"
	"slices"

	"cnmsql.co/internal/core"
)

// checkInvariants holds a plan against the observation it was made from. What it
// needs it works out itself, without the code under test.
func checkInvariants(o core.Observation, plan core.Plan) error {
	for _, check := range []func(core.Observation, core.Plan) error{
		checkDeterminism, checkEpoch, checkProof, checkPosition, checkDiverged, checkBootstrap, checkUnknown,
		checkOneOperation, checkAwaited, checkFenced,
	} {
		if err := check(o, plan); err != nil {
			return err
		}
	}
	return nil
}

// checkDeterminism: the same observation gives the same plan; decided again with
// the status that was written, the status stays, unless a step led to the next. No Pod
// was made meanwhile, and that is known.
func checkDeterminism(o core.Observation, plan core.Plan) error {
	if again := Decide(o); !reflect.DeepEqual(plan, again) {
		return fmt.Errorf("the same observation gave two plans:\n%+v\n%+v", plan, again)
	}
	seen := o
	for range 8 {
		seen.Cluster.Status, seen.Carried = plan.Status, plan.Carried
		seen.Instances = noneMade(seen.Instances, plan.Effects)
		next := Decide(seen)
		if reflect.DeepEqual(next.Status, plan.Status) {
			return nil
		}
		plan = next
	}
	return fmt.Errorf("the status does not settle on one observation: %+v", plan.Status)
}

// noneMade: the Pods that a plan asked for were refused.
func noneMade(all []core.Instance, effects []core.Effect) []core.Instance {
	all = slices.Clone(all)
	for _, e := range effects {
		create, is := e.(core.CreatePod)
		i := slices.IndexFunc(all, func(in core.Instance) bool { return is && in.Name == create.Instance })
		if i >= 0 && create.Awaited != "" {
			all[i].NotMade = append(slices.Clone(all[i].NotMade), create.Awaited)
		}
	}
	return all
}

func granted(o core.Observation, plan core.Plan) (before, after *core.Promotion, isNew bool) {
	before, after = o.Cluster.Status.Promotion, plan.Status.Promotion
	return before, after, after != nil &&
		(before == nil || !after.GrantedAt.Equal(before.GrantedAt) || after.Instance != before.Instance)
}

func checkEpoch(o core.Observation, plan core.Plan) error {
	before, after, isNew := granted(o, plan)
	switch {
	case before != nil && after == nil:
		return fmt.Errorf("a promotion was taken back without another")
	case plan.Status.Epoch < o.Cluster.Status.Epoch:
		return fmt.Errorf("the epoch went back from %d to %d", o.Cluster.Status.Epoch, plan.Status.Epoch)
	case !isNew && after != nil && after.Epoch != before.Epoch:
		return checkContinued(o, before, after)
	case !isNew:
		return nil
	case plan.Status.Epoch <= o.Cluster.Status.Epoch || after.Epoch != plan.Status.Epoch:
		return fmt.Errorf("a promotion without a new epoch: %d after %d", after.Epoch, o.Cluster.Status.Epoch)
	}
	return nil
}

// checkContinued: the same Pod stays primary in a later epoch, and takes writes now.
func checkContinued(o core.Observation, before, after *core.Promotion) error {
	r, known := o.Instance(after.Instance).Report.Get()
	if after.Epoch < before.Epoch || after.PodUID != r.PodUID || !known || r.WritableEpoch != before.Epoch {
		return fmt.Errorf("epoch %d was continued as %d by %+v", before.Epoch, after.Epoch, r)
	}
	return nil
}

// checkProof (I1): the old holder's manager promised, or its Pod has ended and no
// other Pod can have taken its place on that node.
func checkProof(o core.Observation, plan core.Plan) error {
	before, after, isNew := granted(o, plan)
	if !isNew || before == nil {
		return nil
	}
	old := o.Instance(before.Instance)
	if old == nil {
		return fmt.Errorf("%s was promoted after an instance of which nothing is known", after.Instance)
	}
	if after.Proof == core.ProofQuorumCut && isCut(o, before) ||
		after.Proof == core.ProofLeaseExpired && isUnvouched(o, before) {
		return nil
	}
	if after.Proof == core.ProofStatusRestored {
		return checkRestored(o, before, after)
	}
	if after.Proof == core.ProofAcceptedLoss && o.Cluster.Override != nil &&
		*o.Cluster.Override == (core.Override{To: after.Instance, Epoch: before.Epoch}) {
		return nil
	}
	if after.Proof == core.ProofTakenOver && before.Instance == after.Instance && before.FollowsServer() &&
		!after.FollowsServer() {
		return nil
	}
	if word, known := old.Report.Get(); known && word.WritableEpoch != 0 {
		return fmt.Errorf("%s was promoted although %s says it is writable", after.Instance, old.Name)
	}
	if after.Proof == core.ProofManagerFenced && promised(old, before) ||
		after.Proof == core.ProofPodTerminated && ended(old, before) {
		return nil
	}
	return fmt.Errorf("I1: %s was promoted with %s, which does not hold", after.Instance, after.Proof)
}

// checkRestored: everybody is heard, and the highest epoch that anybody saw the status have
// is one that it has not, in which this very Pod takes writes.
func checkRestored(o core.Observation, before, after *core.Promotion) error {
	highest := int64(0)
	for i := range o.Instances {
		in := &o.Instances[i]
		r, known := in.Report.Get()
		if !known && !in.IsGone() {
			return fmt.Errorf("the status was restored without a word of %s", in.Name)
		}
		word, _ := in.Latest.Get()
		highest = max(highest, r.ViewEpoch, word.ViewEpoch)
	}
	for i := range o.Instances {
		if other, _ := o.Instances[i].Report.Get(); other.Instance != after.Instance && other.WritableEpoch == highest {
			return fmt.Errorf("the status was restored for %s, and %s takes writes in epoch %d", after.Instance,
				other.Instance, highest)
		}
	}
	r, _ := o.Instance(after.Instance).Report.Get()
	if max(r.WritableEpoch, r.LastWritable) != highest || r.PodUID != after.PodUID || highest <= before.Epoch ||
		after.Epoch <= highest {
		return fmt.Errorf("epoch %d of %s was restored from epoch %d, and %d was seen", after.Epoch, after.Instance,
			r.WritableEpoch, highest)
	}
	return nil
}

// kept counts the other instances that say they have been silent for so long.
func kept(o core.Observation, p *core.Promotion, seconds int) int {
	n := 0
	for _, in := range o.Instances {
		if !slices.Contains(membersOf(o), in.Name) {
			continue
		}
		r, known := in.Report.Get()
		if !known {
			r, known = in.Latest.Get()
		}
		if pod, seen := in.Pod.Get(); seen && pod.Exists && known && pod.UID != r.PodUID {
			continue
		}
		if in.Name != p.Instance && known && r.Withheld != nil && r.Withheld.Below > p.Epoch &&
			r.Withheld.Seconds >= seconds {
			n++
		}
	}
	return n
}

// membersOf are those who may acknowledge and vouch: all, in a status that does not tell.
func membersOf(o core.Observation) []string {
	s := o.Cluster.Status
	out := append([]string{s.Promotion.Instance}, s.Members...)
	if len(s.Members) == 0 {
		out = append(out, s.InstanceNames...)
		for i := range o.Instances {
			if o.Instances[i].Exists() && !o.Instances[i].IsLeaving() {
				out = append(out, o.Instances[i].Name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// isCut: of the others, fewer than a commit needs have not stopped.
func isCut(o core.Observation, p *core.Promotion) bool {
	return o.Cluster.Durability.Mode == core.DurabilityQuorum && len(membersOf(o))-1-kept(o, p, 0) < p.RequiredAcks
}

// isUnvouched: the lease was taken, and no majority of the smallest cluster that
// the primary may believe in is left.
func isUnvouched(o core.Observation, p *core.Promotion) bool {
	l, known := o.Cluster.Lease.Get()
	return known && l.Holder == "" && l.Epoch > p.Epoch && o.Cluster.PrimaryLease && p.Leased && p.Size > 1 &&
		2*(len(membersOf(o))-kept(o, p, 8)) <= p.Size
}

// promised reports whether it was promised by what was heard last, or by what the status kept. That stays
// true whatever is said by the same Pod before, or by another that may not take writes in this epoch.
func promised(old *core.Instance, p *core.Promotion) bool {
	r, answers := old.Report.Get()
	known := answers
	if !answers {
		r, known = old.Latest.Get()
	}
	isSame, isThere := r.PodUID == p.PodUID, r.Node == p.Node
	pod, _ := old.Pod.Get()
	isBeside := !answers && pod.Exists && pod.UID != p.PodUID && pod.Node != "" && (p.Node == "" || pod.Node == p.Node)
	switch kept := p.NoWritesBelow > p.Epoch && !isBeside; {
	case !known, isSame && !answers && kept, !isSame && !isThere:
		return kept && (isSame || r.WritableEpoch == 0)
	default:
		return r.NoWritesBelow > p.Epoch && r.WritableEpoch == 0 && r.ClientSessions == 0 &&
			(isSame || r.VolumeLocked && r.Data == core.DataPopulated)
	}
}

func ended(old *core.Instance, p *core.Promotion) bool {
	if r, answers := old.Report.Get(); answers && r.PodUID == p.PodUID {
		return false
	}
	node, nodeKnown := old.Node.Get()
	if nodeKnown && (!node.Exists || node.OutOfService) {
		return true
	}
	pod, known := old.Pod.Get()
	if !known {
		return false
	}
	if pod.Exists && pod.UID == p.PodUID {
		return pod.Terminated
	}
	r, heard := old.Report.Get()
	hasNoData := heard && r.PodUID == pod.UID && (r.Data == core.DataEmpty || r.Data == core.DataScratch)
	for _, uid := range append([]string{p.PodUID}, p.Pods...) {
		if isNoThreat(old, p, uid) || pod.Exists && uid == pod.UID && (pod.Node != p.Node || hasNoData) {
			continue
		}
		if !slices.Contains(p.Ended, uid) && !slices.Contains(old.EndedPods, uid) &&
			(!pod.Exists || pod.UID != uid || !pod.Terminated) {
			return false
		}
	}
	return !pod.Exists || pod.UID == p.PodUID || pod.Node == "" || pod.Node != p.Node || hasNoData ||
		slices.Contains(old.EndedPods, pod.UID) || pod.Terminated
}

// isNoThreat: what was awaited by that name was never made, or is the present Pod, which
// counts by its UID, or was made before that and has lost its volume to it.
func isNoThreat(old *core.Instance, p *core.Promotion, name string) bool {
	pod, _ := old.Pod.Get()
	r, heard := old.Report.Get()
	if name == core.PodAwaited {
		return pod.Exists
	}
	var n, own int
	if read, _ := fmt.Sscanf(name, "awaited-%d", &n); read == 0 {
		return false
	}
	_, _ = fmt.Sscanf(pod.Awaited, "awaited-%d", &own)
	onTheVolume := heard && r.PodUID == pod.UID && r.Node == p.Node && r.VolumeLocked && r.Data == core.DataPopulated
	return slices.Contains(old.NotMade, name) || pod.Exists && name == pod.Awaited ||
		pod.Exists && onTheVolume && n <= own
}

// checkAwaited (I1): whoever may have become writable in the epoch is forgotten only for a
// reason, and no Pod of the holder is made whose name the status does not have; one that
// may have been given before is not given again.
func checkAwaited(o core.Observation, plan core.Plan) error {
	before, after, isNew := granted(o, plan)
	if before == nil || isNew {
		return nil
	}
	holder := o.Instance(before.Instance)
	for _, name := range before.Pods {
		if holder != nil && !slices.Contains(after.Pods, name) && !mayForget(holder, before, name) {
			return fmt.Errorf("I1: %s is forgotten, and may become writable", name)
		}
	}
	for _, e := range plan.Effects {
		create, is := e.(core.CreatePod)
		if !is || create.Instance != before.Instance {
			continue
		}
		known, given := slices.Contains(before.Pods, create.Awaited), slices.Contains(holder.NotMade, create.Awaited)
		if several := slices.Contains(after.Pods, create.Awaited+"+"); !several &&
			(!slices.Contains(after.Pods, create.Awaited) || known && !given) {
			return fmt.Errorf("I1: a Pod is made by the name %q, and awaited are %v after %v", create.Awaited,
				after.Pods, before.Pods)
		}
	}
	return nil
}

// mayForget: it is no threat, and will be none when nobody sees its Pod any more.
func mayForget(old *core.Instance, p *core.Promotion, name string) bool {
	pod, _ := old.Pod.Get()
	r, heard := old.Report.Get()
	hasNoData := heard && r.PodUID == pod.UID && (r.Data == core.DataEmpty || r.Data == core.DataScratch)
	if pod.Exists && name == pod.UID {
		return pod.Node != p.Node || hasNoData
	}
	notYet := pod.Exists && name == pod.Awaited && pod.Node == "" && !slices.Contains(old.NotMade, name)
	return isNoThreat(old, p, name) && !notYet
}

// positions are those of instances that answer, have not diverged and hold data.
func positions(o core.Observation, plan core.Plan) map[string]*core.Server {
	known := map[string]*core.Server{}
	for _, in := range o.Instances {
		r, ok := in.Report.Get()
		if ok && r.State == core.Running && r.Data == core.DataPopulated && r.Server != nil &&
			!slices.Contains(plan.Status.Diverged, in.Name) {
			known[in.Name] = r.Server
		}
	}
	return known
}

// checkPosition (I3): what the promoted must have includes what any other holds.
func checkPosition(o core.Observation, plan core.Plan) error {
	_, after, isNew := granted(o, plan)
	if !isNew || after.Proof == core.ProofBootstrap || after.Proof == core.ProofStatusRestored {
		return nil
	}
	known := positions(o, plan)
	if known[after.Instance] == nil {
		return fmt.Errorf("I3: %s was promoted and its position is not known", after.Instance)
	}
	for name, server := range known {
		if !after.RequiredGTID.Contains(server.Holds()) {
			return fmt.Errorf("I3: %s was promoted at %s although %s holds %s", after.Instance, after.RequiredGTID,
				name, server.Holds())
		}
	}
	return nil
}

// checkDiverged (I4).
func checkDiverged(o core.Observation, plan core.Plan) error {
	_, after, isNew := granted(o, plan)
	// A status of the past may list who was recreated since, and promoted.
	had := isNew && after.Proof != core.ProofStatusRestored &&
		slices.Contains(o.Cluster.Status.Diverged, after.Instance)
	if isNew && (had || slices.Contains(plan.Status.Diverged, after.Instance)) {
		return fmt.Errorf("I4: %s has diverged and was promoted", after.Instance)
	}
	for _, e := range plan.Effects {
		switch e := e.(type) {
		case core.DeleteInstance:
			if slices.Contains(plan.Status.Diverged, e.Instance) {
				return fmt.Errorf("I4: the data of %s, which has diverged, is removed", e.Instance)
			}
		case core.LabelPod:
			if e.Routable && slices.Contains(plan.Status.Diverged, e.Instance) {
				return fmt.Errorf("I4: %s has diverged and is routed", e.Instance)
			}
		}
	}
	return nil
}

// checkFenced holds that whom a human has fenced takes neither writes nor reads. The first of all instances is the
// primary even so, and so is one that was it by what the instances say. A primary that is just being fenced may go on
// where it gave its data: the next decision finds it fenced.
func checkFenced(o core.Observation, plan core.Plan) error {
	before, after, isNew := granted(o, plan)
	goesOn := isNew && before != nil && before.Instance == after.Instance &&
		!slices.Contains(o.Cluster.Status.Fenced, after.Instance)
	isChosen := isNew && !goesOn && after.Proof != core.ProofStatusRestored && after.Proof != core.ProofBootstrap
	if isChosen && slices.Contains(plan.Status.Fenced, after.Instance) {
		return fmt.Errorf("%s is fenced and was promoted", after.Instance)
	}
	for _, e := range plan.Effects {
		if l, is := e.(core.LabelPod); is && l.Routable && slices.Contains(plan.Status.Fenced, l.Instance) {
			return fmt.Errorf("%s is fenced and is routed", l.Instance)
		}
	}
	return nil
}

// checkBootstrap (I5).
func checkBootstrap(o core.Observation, plan core.Plan) error {
	before, after, isNew := granted(o, plan)
	if !isNew || after.Proof != core.ProofBootstrap {
		return nil
	}
	if before != nil || !o.Cluster.Status.EstablishedAt.IsZero() {
		return fmt.Errorf("I5: an established cluster was bootstrapped")
	}
	for _, in := range o.Instances {
		if r, known := in.Report.Get(); known && r.Data == core.DataPopulated {
			return fmt.Errorf("I5: bootstrapped although %s has data", in.Name)
		}
	}
	return nil
}

// checkUnknown (I6): nothing is taken away from an instance of which the fact
// that it would rest on is unknown.
func checkUnknown(o core.Observation, plan core.Plan) error {
	for _, e := range plan.Effects {
		switch e := e.(type) {
		case core.DeletePod:
			if in := o.Instance(e.Instance); in == nil || !in.Pod.Known() ||
				!in.Volume.Known() && e.Reason != core.ReasonRollout {
				return fmt.Errorf("I6: %s, though Kubernetes' facts are not known", e)
			}
		case core.DeleteInstance:
			in := o.Instance(e.Instance)
			vol, known := in.Volume.Get()
			if !in.Report.Known() && (!known || vol.Bound) {
				return fmt.Errorf("I6: %s, though it is not known what it holds", e)
			}
		case core.Demote:
			if in := o.Instance(e.Instance); in == nil || !in.Report.Known() {
				return fmt.Errorf("I6: %s, which cannot be asked", e)
			}
		}
	}
	return nil
}

// checkOneOperation: an operation in progress keeps its kind, but for a
// switchover that becomes a failover; nothing is restarted or removed meanwhile.
func checkOneOperation(o core.Observation, plan core.Plan) error {
	was, is := o.Cluster.Status.Operation, plan.Status.Operation
	if was != nil && is != nil && was.Kind == core.OperationFailover && is.Kind == core.OperationSwitchover &&
		!is.StartedAt.Equal(o.Now) {
		return fmt.Errorf("a failover became a switchover")
	}
	for _, e := range plan.Effects {
		del, isDelete := e.(core.DeletePod)
		remove, isRemove := e.(core.DeleteInstance)
		if was != nil && (isRemove && slices.Contains(membersOf(o), remove.Instance) ||
			isDelete && del.Reason == core.ReasonRollout) {
			return fmt.Errorf("%s during a %s", e, was.Kind)
		}
	}
	return nil
}
