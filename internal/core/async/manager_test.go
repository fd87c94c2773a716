package async

import (
	"reflect"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// manage lets every manager do what core/agent would decide, once. It tells
// whether anything has changed, and lets the operator hear what did.
func (w *world) manage() bool {
	changed := false
	for _, in := range w.insts {
		w.tendLease(in)
		if !in.pod.Exists || in.pod.Terminated || in.pod.Waiting != nil || in.cut || w.slow[in.name] {
			continue
		}
		w.see(in)
		before, server := in.truth, cloneServer(in.truth.Server)
		pod := in.pod
		w.step(in)
		in.pod.NeverStarted = false
		in.pod.Ready = w.isReady(in)
		if !reflect.DeepEqual(before, in.truth) || !reflect.DeepEqual(server, in.truth.Server) || pod != in.pod {
			changed = true
		}
	}
	if changed {
		w.hearAll()
	}
	return changed
}

func cloneServer(s *core.Server) *core.Server {
	if s == nil {
		return nil
	}
	clone := *s
	if s.Replication != nil {
		rep := *s.Replication
		clone.Replication = &rep
	}
	return &clone
}

// advance lets time pass in steps short enough for leases and vouches.
func (w *world) advance(d time.Duration) {
	for d > 0 {
		step := min(d, time.Second)
		w.now, d = w.now.Add(step), d-step
		for _, in := range w.insts {
			w.tendLease(in)
		}
	}
	w.hearAll()
}

func (w *world) isReady(in *inst) bool {
	r := in.truth
	if r.State != core.Running || r.Data != core.DataPopulated || r.Terminating {
		return false
	}
	return r.WritableEpoch != 0 || w.isClosed(in) || r.Server.Replication != nil && r.Server.Replication.IORunning &&
		r.Server.Replication.SQLRunning
}

// step is one manager's next move.
func (w *world) step(in *inst) {
	r := &in.truth
	permitted := w.facts(in).Permitted()
	if r.WritableEpoch != 0 && !permitted && !in.lost {
		in.stopWrites()
		return
	}
	switch r.State {
	case core.Starting:
		w.look(in)
	case core.Empty:
		w.fill(in)
	case core.Cloning:
		w.finishClone(in)
	case core.Recovering:
		r.State, r.Server.SuperReadOnly = core.Running, true
	case core.Stopped:
		if !permitted {
			r.State = core.Recovering
		}
	case core.Running:
		if permitted {
			w.promote(in)
		} else if r.WritableEpoch == 0 {
			w.follow(in)
		}
	}
}

// look: the manager has started and looks at its volume.
func (w *world) look(in *inst) {
	r := &in.truth
	if r.Data == core.DataPopulated {
		r.State = core.Running
		r.Server.SuperReadOnly = true
		stopIO(in)
		return
	}
	r.State, r.Data = core.Empty, core.DataEmpty
}

// fill makes the data that the instance is to make.
func (w *world) fill(in *inst) {
	r := &in.truth
	for _, a := range agent.Decide(w.facts(in)).Actions {
		switch data, makes := a.(agent.MakeData); {
		case makes && data.From == core.OriginCloned:
			r.State, r.Data = core.AwaitingClone, core.DataScratch
		case makes:
			r.State, r.Data = core.Running, core.DataPopulated
			r.Server = &core.Server{UUID: uuidOf(in.ordinal), Executed: parseSet(letters[in.ordinal-1:in.ordinal] +
				":1"), SuperReadOnly: true}
		}
	}
}

func (w *world) finishClone(in *inst) {
	donor := w.inst(in.truth.Clone.Donor)
	if donor != nil && donor.hangs() {
		return // a clone waits until every commit of its donor has ended
	}
	if donor == nil || donor.truth.Server == nil {
		in.truth.State, in.truth.Clone.Error = core.AwaitingClone, "the donor is gone"
		return
	}
	if from, to := donor.truth.Version, in.truth.Version; !core.CanClone(from, to) {
		in.truth.State, in.truth.Clone.Error = core.AwaitingClone, "Clone Donor MySQL version: "+from+
			" is different from Recipient MySQL version "+to
		in.truth.Clone.Failures++
		return
	}
	in.truth.State, in.truth.Data, in.truth.Clone = core.Running, core.DataPopulated, nil
	in.truth.Server = &core.Server{UUID: uuidOf(in.ordinal), Executed: donor.truth.Server.Executed, SuperReadOnly: true}
}

// promote: what is missing is received, then all is applied, then it opens.
func (w *world) promote(in *inst) {
	p, r := in.view.Promotion, &in.truth
	if r.WritableEpoch == p.Epoch {
		w.followServer(in)
		return
	}
	if r.TakesWrites() || r.WritableEpoch != 0 && p.FollowsServer() { // only the epoch changes
		if w.mayOpen(in, p.Epoch) {
			r.WritableEpoch = p.Epoch
		}
		return
	}
	if !r.Server.Holds().Contains(p.RequiredGTID) {
		if from := w.inst(p.From); from != nil && from.truth.State == core.Running && r.Server.Replication != nil {
			r.Server.Replication.Retrieved = r.Server.Replication.Retrieved.Union(from.truth.Server.Executed)
		}
		return
	}
	r.Server.Executed = r.Server.Holds()
	r.Server.Replication = nil
	if !w.mayOpen(in, p.Epoch) {
		return
	}
	if r.Follows = p.Follows; p.FollowsServer() {
		r.WritableEpoch = p.Epoch
		w.followServer(in)
		return
	}
	r.Server.SuperReadOnly, r.WritableEpoch = false, p.Epoch
	r.Server.SemiSync = core.SemiSync{SourceEnabled: p.RequiredAcks > 0, SourceActive: p.RequiredAcks > 0,
		Acks: p.RequiredAcks, Order: p.AcksOrder, OrderEpoch: p.Epoch,
		Blocks: in.view.WaitsForEver()}
}

// follow: replicate from the primary, if it is writable and nothing is errant.
func (w *world) follow(in *inst) {
	p, r := in.view.Promotion, &in.truth
	if rep := r.Server.Replication; rep != nil && rep.SQLError == "" {
		r.Server.Executed = r.Server.Holds()
	}
	if p == nil || p.Instance == in.name {
		return
	}
	primary := w.inst(p.Instance)
	if primary == nil || primary.truth.WritableEpoch != p.Epoch && !w.isClosed(primary) || !primary.runs() {
		w.lostSource(in, primary)
		return
	}
	if r.Errant = (gtid.Set{}); !p.FollowsServer() {
		r.Errant = r.Server.Executed.Subtract(primary.truth.Server.Executed).Subtract(r.Maintenance)
	}
	if !r.Errant.IsEmpty() || r.NoReceivingBelow > p.Epoch ||
		r.Server.Replication != nil && r.Server.Replication.SQLError != "" {
		stopIO(in)
		return
	}
	r.Server.Executed = r.Server.Executed.Union(primary.truth.Server.Executed)
	r.Server.Replication = &core.Replication{SourceHost: primary.name, IORunning: true, SQLRunning: true,
		Retrieved: gtid.Set{}}
	r.Server.SemiSync.ReplicaEnabled = in.view.Acknowledges(in.name)
	w.countClients(primary)
}

// isClosed: who was primary and gives its data is followed, too.
func (w *world) isClosed(primary *inst) bool {
	op := w.cluster.Status.Operation
	return op != nil && op.Kind == core.OperationGiveData && op.From == primary.name && primary.truth.WritableEpoch == 0
}

// hangs: somebody writes always, and no commit ends.
func (in *inst) hangs() bool {
	if in.truth.WritableEpoch == 0 || in.truth.Server == nil {
		return false
	}
	s := in.truth.Server.SemiSync
	return s.Starves(s.Clients)
}

// lostSource: a replica whose source does not run keeps trying.
func (w *world) lostSource(in, primary *inst) {
	rep := in.truth.Server.Replication
	if rep != nil && rep.IORunning && primary != nil && rep.SourceHost == primary.name && !primary.runs() {
		rep.IORunning, rep.IOConnecting = false, true
	}
}

func (in *inst) runs() bool {
	return !in.cut && in.pod.Exists && !in.pod.Terminated && in.truth.State == core.Running && in.truth.Server != nil
}

func (w *world) countClients(primary *inst) {
	n := 0
	for _, in := range w.insts {
		if s := in.truth.Server; in.runs() && s.Replication != nil && s.SemiSync.ReplicaEnabled &&
			s.Replication.IORunning && s.Replication.SourceHost == primary.name {
			n++
		}
	}
	primary.truth.Server.SemiSync.Clients = n
}

// sendSuccessor has a manager take its successor, as far as it does.
func (w *world) sendSuccessor(in *inst) {
	switch in.successor.Sent = w.now; {
	case in.keepsManager != "":
		busy := strings.HasPrefix(in.keepsManager, string(core.OrderBusy))
		in.successor.Refused(in.keepsManager, busy, w.now)
	case in.truth.ManagerRefused == nil:
		in.truth.Manager = w.cluster.Manager
	}
}
