package async

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// world is a tiny model of a cluster: the truth of every instance, and what the
// operator has heard of it. Its mysqld replicate at once, its managers do at once
// what core/agent would decide, and its Kubernetes has no delays.
type world struct {
	now     time.Time
	cluster core.Cluster
	insts   []*inst
	pods    int // Pods made so far
	// slow managers do not act by themselves.
	slow map[string]bool
	// unheard is why managers cannot be reached, of those of which that is told.
	unheard map[string]string
	// former are the managers of claims that outlived a deleted Cluster, once adopted.
	former map[string]core.Report
	// memory is the operator's of its last plan.
	memory   core.Carried
	coverage coverage
	// lease is the record of the primary's, as everybody sees it at once.
	lease core.Lease
	// writes counts changes of the record.
	writes int
	// server is the external server that is followed; nil where there is none.
	server *server
	// image is the spec's: what Pods are made from, "mysql:8.4.9"; "" where versions do not matter.
	image string
}

// inst is one instance: what is true, and what was heard.
type inst struct {
	name    string
	ordinal int
	pod     core.Pod
	volume  core.Volume
	node    core.Node
	heldBy  string
	blind   bool // Kubernetes' facts are unknown
	truth   core.Report
	lost    bool // the operator cannot reach the manager
	cut     bool // nor do its replicas reach it
	heard   core.Heard
	// withheldAt is when the manager stopped receiving.
	withheldAt time.Time
	mind
	ended     core.EndedPods
	notMade   core.NotMade
	backedUp  bool
	successor core.Successor
	// keepsManager is why its manager does not take a successor; "" when it does.
	keepsManager string
}

var epochStart = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newWorld(c core.Cluster) *world {
	c.Name = "c"
	c.Routed = core.Known("", epochStart, epochStart)
	c.PrimaryLease = true
	return &world{now: epochStart, cluster: c, slow: map[string]bool{}, unheard: map[string]string{},
		former: map[string]core.Report{},
		lease:  core.Lease{UnchangedSince: epochStart}}
}

// letters stand for server UUIDs: a is c-1's, b is c-2's and so on.
const letters = "abcdef"

func uuidOf(ordinal int) string {
	l := letters[(ordinal-1)%len(letters)]
	return strings.Map(func(r rune) rune {
		if r == 'x' {
			return rune(l)
		}
		return r
	}, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

// parseSet reads "a:1-10,b:3".
func parseSet(text string) gtid.Set {
	if text == "" || text == "none" {
		return gtid.Set{}
	}
	for i := range letters {
		text = strings.ReplaceAll(text, letters[i:i+1]+":", strings.ToUpper(uuidOf(i+1))+":")
	}
	return gtid.MustParse(text)
}

// short is the inverse of parseSet, for any text.
func short(text string) string {
	for i := range letters {
		text = strings.ReplaceAll(text, uuidOf(i+1), letters[i:i+1])
	}
	return strings.ReplaceAll(text, ",\n", ",")
}

func (w *world) inst(name string) *inst {
	for _, in := range w.insts {
		if in.name == name {
			return in
		}
	}
	return nil
}

// add makes an instance that has nothing yet.
func (w *world) add(name string) *inst {
	if in := w.inst(name); in != nil {
		return in
	}
	in := &inst{name: name, node: core.Node{Exists: true}}
	fmt.Sscanf(name, "c-%d", &in.ordinal)
	w.insts = append(w.insts, in)
	slices.SortFunc(w.insts, func(a, b *inst) int { return a.ordinal - b.ordinal })
	return in
}

// startPod makes a Pod and lets its manager look at the volume.
func (w *world) startPod(in *inst) {
	w.pods++
	in.successor = core.Successor{}
	in.mind = mind{latest: in.latest}
	in.pod = core.Pod{Exists: true, UID: fmt.Sprintf("pod-%d", w.pods), Node: fmt.Sprintf("node-%d", in.ordinal),
		Current: true, CurrentButImage: true, Image: w.image, NeverStarted: true}
	data, server := in.truth.Data, in.truth.Server
	in.withheldAt = w.now
	in.truth = core.Report{Instance: in.name, PodUID: in.pod.UID, Node: in.pod.Node, State: core.Starting,
		VolumeLocked: true, NoWritesBelow: in.truth.NoWritesBelow, NoReceivingBelow: in.truth.NoReceivingBelow,
		Withheld: in.truth.Withheld, Data: data, Server: server, Former: in.truth.Former,
		Version: versionOf(w.image)}
}

// hear lets the operator hear an instance's truth now.
func (w *world) hear(in *inst) {
	w.now = w.now.Add(time.Millisecond)
	if in.lost || !in.pod.Exists || in.pod.NeverStarted || in.pod.Terminated {
		return
	}
	r := in.truth
	if r.Withheld != nil {
		r.Withheld = &core.Withheld{Below: r.Withheld.Below, Seconds: int(w.now.Sub(in.withheldAt).Seconds())}
	}
	if in.view != nil {
		in.view.TellView(&r)
	}
	if r.Server != nil {
		server := *r.Server
		if rep := server.Replication; rep != nil {
			clone := *rep
			server.Replication = &clone
		}
		r.Server = &server
	}
	if r.State != core.Running {
		r.Server = nil
	}
	if last, known := in.heard.Latest.Get(); !known || r.IsOfAnotherManager(last) {
		in.successor = core.Successor{}
	}
	in.heard.Take(r, w.now, w.now)
}

// hearAll: replicas first, so that the primary's word is the later one.
func (w *world) hearAll() {
	var primary *inst
	for _, in := range w.insts {
		if p := w.cluster.Status.Promotion; p != nil && p.Instance == in.name {
			primary = in
			continue
		}
		w.hear(in)
	}
	if primary != nil {
		w.hear(primary)
	}
}

func (w *world) lose(in *inst) {
	in.lost = true
	in.heard.Lose()
}

// observe builds what the operator's shell would.
func (w *world) observe() core.Observation {
	w.insts = slices.DeleteFunc(w.insts, func(in *inst) bool {
		return !in.pod.Exists && !in.volume.Exists && !slices.Contains(w.cluster.Status.InstanceNames, in.name)
	})
	o := core.Observation{Now: w.now, Cluster: w.cluster, Carried: w.memory}
	o.Cluster.Lease = core.Known(w.lease, w.now, w.now)
	for _, in := range w.insts {
		out := core.Instance{Name: in.name, Ordinal: in.ordinal, HeldBy: in.heldBy,
			Unheard: w.unheard[in.name], EndedPods: in.ended, NotMade: in.notMade.Names(), BackedUp: in.backedUp,
			Successor: in.successor}
		if !in.blind {
			out.Pod = core.Known(in.pod, w.now, w.now)
			out.Volume = core.Known(in.volume, w.now, w.now)
			out.Node = core.Known(in.node, w.now, w.now)
		}
		in.heard.Put(&out)
		o.Instances = append(o.Instances, out)
	}
	return o
}

// setClock: the operator's clock shows another time from now on.
func (w *world) setClock(by time.Duration) {
	w.now = w.now.Add(by)
	for _, in := range w.insts {
		in.withheldAt = in.withheldAt.Add(by)
		in.mind.shift(by)
	}
}

// restartOperator forgets all that is not in status, and hears everybody again.
func (w *world) restartOperator() {
	for _, in := range w.insts {
		in.heard, in.ended, in.notMade = core.Heard{}, nil, core.NotMade{}
	}
	w.lease.UnchangedSince, w.memory = w.now, core.Carried{}
	w.hearAll()
}

// carryOut applies an effect.
func (w *world) carryOut(e core.Effect) {
	switch e := e.(type) {
	case core.CreateVolume:
		w.add(e.Instance).volume = w.newVolume(e.Instance)
	case core.AdoptVolume:
		i := slices.IndexFunc(w.cluster.FormerVolumes, func(v core.FormerVolume) bool {
			return v.Instance == e.Instance && v.UID == e.UID
		})
		if w.cluster.FormerVolumes[i].Removed {
			w.cluster.KeptVolumes = append(w.cluster.KeptVolumes, e.Instance)
		} else {
			in := w.add(e.Instance)
			in.volume, in.truth = core.Volume{Exists: true, UID: e.UID, Bound: true}, w.former[e.Instance]
		}
		w.cluster.FormerVolumes = slices.Delete(w.cluster.FormerVolumes, i, i+1)
	case core.CreatePod:
		w.createPod(w.add(e.Instance), e.Awaited)
		w.makeFrom(w.inst(e.Instance), e.Image)
	case core.DeletePod:
		w.endPod(w.inst(e.Instance))
	case core.DeleteInstance:
		if w.isAnother(e.Instance, e.Owned) {
			return
		}
		w.insts = slices.DeleteFunc(w.insts, func(in *inst) bool { return in.name == e.Instance })
		if e.KeepVolume {
			w.cluster.KeptVolumes = append(w.cluster.KeptVolumes, e.Instance)
		}
	case core.LabelPod:
		in := w.inst(e.Instance)
		in.pod.Role, in.pod.Routable = e.Role, e.Routable
	case core.ClearDemote:
		w.inst(e.Instance).pod.DemoteRequested = false
	case core.SeizeLease:
		if w.lease.Version == e.Version {
			w.writeLease("", e.Epoch)
		}
	case core.ResetLease:
		if w.lease.Version == e.Version {
			w.writeLease("", e.Epoch)
		}
	case core.ReinitInstance:
		if w.isAnother(e.Instance, e.Owned) {
			return
		}
		in := w.inst(e.Instance)
		in.volume.Deleting = true
		w.endPod(in)
	case core.BindReinit:
		w.cluster.Reinit = core.BoundReinit(w.cluster.Reinit, e.Request)
	case core.ClearReinit:
		w.cluster.Reinit = core.WithoutReinit(w.cluster.Reinit, e.Instance)
	case core.ClearOverride:
		w.cluster.Override = nil
	case core.RouteWrites:
		w.cluster.Routed = core.Known(e.Instance, w.now, w.now)
	default:
		w.adjust(e)
	}
}

// createPod is refused when there is one.
func (w *world) createPod(in *inst, awaited string) {
	in.notMade.Ask(awaited)
	if in.pod.Exists {
		in.notMade.Refused(awaited)
		return
	}
	w.startPod(in)
	in.pod.Awaited = awaited
}

// isAnother: what is there was not meant.
func (w *world) isAnother(name string, meant core.Owned) bool {
	in := w.inst(name)
	return in == nil || in.volume.UID != meant.VolumeUID || in.pod.UID != meant.PodUID
}

// endPod: the Pod stops for good and goes; its manager's last words are heard.
func (w *world) endPod(in *inst) {
	if in == nil || !in.pod.Exists {
		return
	}
	in.ended = in.ended.With(in.pod.UID)
	in.pod = core.Pod{}
	in.heard.Lose()
	in.truth.WritableEpoch = 0
	if !in.volume.Exists || in.volume.Deleting {
		w.wipe(in)
	}
}

func (w *world) wipe(in *inst) {
	in.volume = core.Volume{}
	in.truth.Data, in.truth.Server, in.truth.NoWritesBelow, in.truth.NoReceivingBelow, in.truth.Errant = core.DataEmpty,
		nil, 0, 0, gtid.Set{}
	in.truth.Withheld, in.latest = nil, agent.Latest{}
}

// order carries out a command to a manager; one that cannot be reached does not
// get it.
func (w *world) order(e core.Effect) {
	name, epoch, act := w.command(e)
	in := w.inst(name)
	if in == nil || in.lost || !in.pod.Exists || in.pod.NeverStarted || in.pod.Terminated {
		return
	}
	if !w.slow[name] {
		w.see(in)
	}
	if act != nil && in.standing().Refuses(epoch) == nil {
		in.truth.SeenEpoch = epoch
		act(in)
	}
	w.hear(in)
}

func (w *world) command(e core.Effect) (name string, epoch int64, act func(*inst)) {
	switch e := e.(type) {
	case core.Demote:
		return e.Instance, e.Epoch, func(in *inst) {
			in.truth.NoWritesBelow = max(in.truth.NoWritesBelow, e.Epoch)
			if agent.MustStopFor(e.Epoch, in.truth.WritableEpoch, in.activity()) {
				in.stopWrites()
			}
		}
	case core.ReceivePromise:
		return e.Instance, e.Epoch, func(in *inst) {
			in.truth.NoReceivingBelow, in.truth.Withheld = e.Epoch, &core.Withheld{Below: e.Epoch}
			in.withheldAt = w.now
			stopIO(in)
		}
	case core.CloneFrom:
		return e.Instance, e.Epoch, func(in *inst) {
			if in.standing().RefusesCopy(e.Donor) != nil {
				return
			}
			failures := 0
			if in.truth.Clone != nil {
				failures = in.truth.Clone.Failures
			}
			in.truth.State = core.Cloning
			in.truth.Clone = &core.Clone{Donor: e.Donor, Stage: "FILE COPY", Failures: failures}
		}
	case core.RestartInPlace:
		return e.Instance, e.Epoch, func(in *inst) {
			if in.truth.State == core.Stopped {
				in.truth.State = core.Recovering
			}
		}
	case core.ReplaceManager:
		return e.Instance, w.cluster.Status.Epoch, func(in *inst) { w.sendSuccessor(in) }
	case core.SetAcks:
		return e.Instance, e.Epoch, func(in *inst) { in.setAcks(e) }
	case core.AdoptTransactions:
		return e.Instance, e.Epoch, func(in *inst) {
			in.truth.Server.Executed = in.truth.Server.Executed.Union(gtid.MustParse(e.Set))
		}
	case core.Refresh:
		return e.Instance, 0, nil
	}
	panic(fmt.Sprintf("the model does not know %T", e))
}

func stopIO(in *inst) {
	if in.truth.Server != nil && in.truth.Server.Replication != nil {
		in.truth.Server.Replication.IORunning, in.truth.Server.Replication.IOConnecting = false, false
	}
}

func (w *world) writeLease(holder string, epoch int64) {
	w.writes++
	w.lease = core.Lease{Holder: holder, Epoch: epoch, Version: fmt.Sprint(w.writes), UnchangedSince: w.now}
}
