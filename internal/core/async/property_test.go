package async

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
	"cnmsql.co/internal/gtid"
)

// TestInvariantsOfAnyObservation: whatever is observed, however impossible, the
// decision keeps the invariants, and a few decisions on end do.
func TestInvariantsOfAnyObservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawObservation(t)
		for range rapid.IntRange(1, 4).Draw(t, "decisions") {
			plan := Decide(o)
			if err := checkInvariants(o, plan); err != nil {
				t.Fatalf("%v\n%s", err, short(printPlan(o, plan)))
			}
			o.Cluster.Status = plan.Status
			o.Now = o.Now.Add(time.Duration(rapid.IntRange(0, 20000).Draw(t, "ms")) * time.Millisecond)
		}
	})
}

// TestEventsAreToldOnce: decided again on the very same, nothing is told twice.
func TestEventsAreToldOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawObservation(t)
		for range 8 {
			o.Cluster.Status = Decide(o).Status
		}
		plan := Decide(o)
		for _, ev := range plan.Events {
			if ev.Reason != core.ReasonAcksChanged { // told with the order, until it is carried out
				t.Fatalf("told again and again: %s\n%s", printEvent(ev), short(printPlan(o, plan)))
			}
		}
	})
}

func oneOf[T any](t *rapid.T, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, label)
}

func chance(t *rapid.T, label string, percent int) bool {
	return rapid.IntRange(0, 99).Draw(t, label) >= 100-percent
}

func drawObservation(t *rapid.T) core.Observation {
	n := rapid.IntRange(1, 5).Draw(t, "n")
	o := core.Observation{Now: epochStart.Add(time.Hour), Cluster: core.Cluster{
		Name: "c", Wanted: rapid.IntRange(1, 5).Draw(t, "wanted"), KeepVolumes: rapid.Bool().Draw(t, "keep volumes"),
		Durability: core.Durability{
			Mode: oneOf(t, "durability", core.DurabilityAsync, core.DurabilityPreferred, core.DurabilityRequired,
				core.DurabilityQuorum),
			Min: rapid.IntRange(0, 3).Draw(t, "min")},
		FailoverDelay:   time.Duration(rapid.IntRange(0, 10).Draw(t, "delay")) * time.Second,
		SwitchoverPause: time.Duration(rapid.IntRange(0, 10).Draw(t, "pause")) * time.Second,
		SwitchoverLimit: time.Duration(rapid.IntRange(0, 30).Draw(t, "limit")) * time.Second,
		Routed:          core.Known("c-1", epochStart, epochStart),
	}}
	for i := range n {
		o.Cluster.Status.InstanceNames = append(o.Cluster.Status.InstanceNames, fmt.Sprintf("c-%d", i+1))
	}
	drawStatus(t, &o.Cluster.Status, n)
	if chance(t, "regressed", 90) {
		o.Carried.Regressed = core.Since{Epoch: o.Cluster.Status.Epoch + 1, At: epochStart}
	}
	for i := range n {
		o.Instances = append(o.Instances, drawInstance(t, i+1, o))
	}
	return o
}

func drawStatus(t *rapid.T, s *core.Status, n int) {
	name := func(label string) string { return fmt.Sprintf("c-%d", rapid.IntRange(1, n).Draw(t, label)) }
	if !chance(t, "promoted", 90) {
		return
	}
	holder := name("holder")
	s.Epoch = 3
	s.Promotion = &core.Promotion{Epoch: 3, Instance: holder, Proof: core.ProofManagerFenced, From: name("from"),
		PodUID: holder + "-pod", Node: holder + "-node", RequiredAcks: rapid.IntRange(0, 2).Draw(t, "acks"),
		RequiredGTID: drawSet(t, "required")}
	drawAwaited(t, s.Promotion)
	s.CurrentPrimary, s.TargetPrimary = name("current"), holder
	if chance(t, "established", 90) {
		s.EstablishedAt = epochStart
	}
	if chance(t, "was writable", 80) {
		s.Promotion.WritableSince = epochStart
	}
	if chance(t, "members are told", 70) {
		for i := range n {
			if who := fmt.Sprintf("c-%d", i+1); who == holder || chance(t, who+" is a member", 80) {
				s.Members = append(s.Members, who)
			}
		}
	}
	if chance(t, "wish", 20) {
		s.TargetPrimary = name("target")
	}
	if chance(t, "some diverged", 20) {
		if d := name("diverged"); d != holder {
			s.Diverged = []string{d}
		}
	}
	if chance(t, "some fenced", 20) {
		s.Fenced = []string{name("fenced")}
	}
	if n > 1 && chance(t, "operation", 40) {
		s.Operation = &core.Operation{From: holder, To: name("to"), StartedAt: epochStart.Add(59 * time.Minute),
			Deadline: epochStart.Add(time.Duration(rapid.IntRange(59, 61).Draw(t, "deadline")) * time.Minute),
			Kind:     oneOf(t, "kind", core.OperationSwitchover, core.OperationFailover, core.OperationGiveData)}
		if s.Operation.Kind == core.OperationGiveData {
			s.Operation.Step = oneOf(t, "step", core.StepDemote, core.StepCopy, core.StepPromote)
		} else if s.Operation.Kind == core.OperationFailover {
			s.FailingSince = s.Operation.StartedAt
			s.Operation.Step = oneOf(t, "step", core.StepDelay, core.StepProve, core.StepElect, core.StepPromote)
		} else {
			s.Operation.Step = oneOf(t, "step", core.StepCatchUp, core.StepDemote, core.StepPromote, core.StepReturn)
			if s.Operation.To == holder {
				s.Operation.To = oneOf(t, "other", draft.Without([]string{"c-1", "c-2"}, holder)...)
			}
		}
	}
}

// drawAwaited draws Pods of the holder that were made, or may have been.
func drawAwaited(t *rapid.T, p *core.Promotion) {
	if !chance(t, "Pods are awaited", 30) {
		return
	}
	p.Pods, p.Awaited = []string{p.PodUID}, 3
	for _, name := range []string{core.PodAwaited, "awaited-1", "awaited-2", "awaited-3+", p.Instance + "-pod2"} {
		if chance(t, name, 30) {
			p.Pods = append(p.Pods, name)
		}
	}
	if chance(t, "some ended", 60) {
		p.Ended = []string{p.PodUID}
	}
}

// drawSet draws from few sets, so that they often contain one another.
func drawSet(t *rapid.T, label string) gtid.Set {
	return parseSet(oneOf(t, label, "", "a:1-10", "a:1-12", "a:1-14", "a:1-12,b:1", "a:1-10,c:1-2"))
}

func drawInstance(t *rapid.T, ordinal int, o core.Observation) core.Instance {
	name := fmt.Sprintf("c-%d", ordinal)
	in := core.Instance{Name: name, Ordinal: ordinal}
	other := oneOf(t, name+" pod", "-pod", "-pod", "-pod", "-pod2")
	pod := core.Pod{Exists: chance(t, "pod exists", 90), UID: name + other, Node: oneOf(t, "node", name+"-node",
		name+"-node", name+"-node2", ""),
		Ready: chance(t, "ready", 80), Current: chance(t, "current", 90), Terminating: chance(t, "terminating", 10),
		Terminated: chance(t, "terminated", 10), NeverStarted: chance(t, "never started", 10),
		DemoteRequested: chance(t, "demote", 5), FencingRequested: chance(t, "fence", 10), Role: "replica",
		Awaited: oneOf(t, "awaited", "", "awaited-1", "awaited-2", "awaited-3", "awaited-4")}
	if !pod.Exists {
		pod = core.Pod{}
	}
	if chance(t, "pod known", 95) {
		in.Pod = core.Known(pod, o.Now, o.Now)
	}
	if chance(t, "volume known", 95) {
		exists := chance(t, "volume exists", 95)
		in.Volume = core.Known(core.Volume{Exists: exists, Bound: exists, Deleting: exists && chance(t,
			"volume deleting", 5)}, o.Now, o.Now)
	}
	if chance(t, "node known", 90) {
		in.Node = core.Known(core.Node{Exists: chance(t, "node exists", 95), OutOfService: chance(t,
			"out of service", 5)}, o.Now, o.Now)
	}
	if chance(t, "pod ended", 15) {
		in.EndedPods = []string{name + "-pod"}
	}
	if chance(t, "pod not made", 10) {
		in.NotMade = []string{oneOf(t, "not made", "awaited-1", "awaited-2", "awaited-3")}
	}
	at := o.Now.Add(-time.Duration(rapid.IntRange(0, 1000).Draw(t, "age")) * time.Millisecond)
	report := core.Known(drawReport(t, name, pod, o), at, at)
	if chance(t, "word kept", 80) {
		in.Latest = report
	}
	if pod.Exists && chance(t, "heard", 80) {
		in.Report, in.Latest = report, report
	}
	return in
}

func drawReport(t *rapid.T, name string, pod core.Pod, o core.Observation) core.Report {
	r := core.Report{Instance: name, PodUID: pod.UID, Node: pod.Node, Data: oneOf(t, "data", core.DataPopulated,
		core.DataPopulated, core.DataPopulated, core.DataEmpty, core.DataScratch, core.DataUnknown),
		State: core.Running, NoWritesBelow: oneOf[int64](t, "fenced", 0, 0, 3, 4),
		NoReceivingBelow: oneOf[int64](t, "frozen", 0, 0, 4),
		VolumeLocked:     chance(t, "locked", 90), Terminating: pod.Terminating, ViewEpoch: o.Cluster.Status.Epoch}
	if chance(t, "saw more", 3) {
		r.ViewEpoch++
		r.LastWritable = oneOf(t, "last writable", r.ViewEpoch, r.ViewEpoch-1)
	}
	switch r.Data {
	case core.DataEmpty:
		r.State = core.Empty
		return r
	case core.DataScratch:
		r.State = core.AwaitingClone
		return r
	case core.DataUnknown:
		r.State = core.Starting
		return r
	}
	r.State = oneOf(t, "state", core.Running, core.Running, core.Running, core.Stopped, core.Hung, core.Recovering,
		core.Failed, core.Fenced)
	if r.State != core.Running {
		return r
	}
	r.Server = &core.Server{UUID: uuidOf(1), Executed: drawSet(t, "executed"), SuperReadOnly: true}
	p := o.Cluster.Status.Promotion
	if p != nil && p.Instance == name && r.NoWritesBelow <= p.Epoch && chance(t, "writable", 60) {
		r.WritableEpoch = p.Epoch
	} else if r.ViewEpoch > o.Cluster.Status.Epoch && chance(t, "of that epoch", 60) {
		r.WritableEpoch = r.ViewEpoch
	} else if p != nil {
		r.Server.Replication = &core.Replication{SourceHost: p.Instance, IORunning: chance(t, "io", 60),
			IOConnecting: chance(t, "connecting", 20), SQLRunning: chance(t, "sql", 80),
			Retrieved: drawSet(t, "retrieved")}
		if !r.Server.Replication.SQLRunning && chance(t, "sql error", 50) {
			r.Server.Replication.SQLError = "duplicate key"
		}
	}
	if chance(t, "errant", 5) {
		r.Errant = parseSet("c:9")
		if p != nil && chance(t, "errant now", 50) {
			r.ErrantEpoch = p.Epoch
		}
	}
	return r
}
