package async

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cnmsql.co/internal/core"
)

// setReport changes one thing that a manager says.
func setReport(r *core.Report, key, v string) error {
	var err error
	switch key {
	case "state":
		r.State = core.State(v)
		if r.State != core.Running {
			r.WritableEpoch = 0
		}
	case "manager":
		r.Manager = build(v)
	case "manager-refused":
		r.ManagerRefused = &core.RefusedBinary{Digest: v, Why: "it does not run here"}
	case "version":
		r.Version = v
	case "reason":
		r.Reason = core.Reason(v)
	case "message":
		r.Message = v
	case "data":
		r.Data = core.DataState(v)
	case "writable":
		r.WritableEpoch, err = strconv.ParseInt(v, 10, 64)
	case "last-writable":
		r.LastWritable, err = strconv.ParseInt(v, 10, 64)
	case "view":
		r.ViewEpoch, err = strconv.ParseInt(v, 10, 64)
	case "seen":
		r.SeenEpoch, err = strconv.ParseInt(v, 10, 64)
	case "fenced":
		r.NoWritesBelow, err = strconv.ParseInt(v, 10, 64)
	case "frozen":
		r.NoReceivingBelow, err = strconv.ParseInt(v, 10, 64)
	case "sessions":
		r.ClientSessions, err = strconv.Atoi(v)
	case "generation":
		r.Generation, err = strconv.ParseInt(v, 10, 64)
	case "leased":
		r.Leased = v != "no"
	case "unlocked":
		r.VolumeLocked = false
	case "lagging":
		r.Lagging = v != "no"
	case "terminating":
		r.Terminating = true
	case "refuses": // the parameters of the spec
		r.ConfigRefused = v
	case "token": // refused or taken
		r.TokenRefused = v == "refused"
	case "room": // ample, low or full
		r.Room = &core.Room{Size: 1 << 30, Low: v != "ample", Full: v == "full"}
	default:
		err = setData(r, key, v)
	}
	return err
}

// setData changes one thing that a manager says of the data of its instance, or of its copying them.
func setData(r *core.Report, key, v string) error {
	var err error
	switch key {
	case "recovered": // the group of a deleted Cluster, in an epoch
		r.Former.Group = "g-old"
		r.Former.Recovery, err = strconv.ParseInt(v, 10, 64)
	case "may-lack":
		r.MayLack = v != "no"
	case "needs-reclone":
		r.NeedsReclone = true
	case "errant":
		r.Errant, r.ErrantEpoch = parseSet(v), r.SeenEpoch
	case "maintenance":
		r.Maintenance = parseSet(v)
	case "errant-epoch":
		r.ErrantEpoch, err = strconv.ParseInt(v, 10, 64)
	case "clone-error":
		r.Clone = &core.Clone{Error: v}
	case "clone-donor":
		r.Clone.Donor = v
	case "clone-pausing":
		r.Clone = &core.Clone{Error: v, Pausing: true}
	case "clone-failures":
		r.Clone.Failures, err = strconv.Atoi(v)
	case "clone-percent":
		r.Clone.Percent, err = strconv.Atoi(v)
	default:
		err = setServer(r, key, v)
	}
	return err
}

func setServer(r *core.Report, key, v string) error {
	if r.Server == nil {
		return fmt.Errorf("%s has no server to say %s of", r.Instance, key)
	}
	if r.Server.Replication == nil && !slices.Contains([]string{"executed", "purged", "owned", "acks", "acks-order",
		"blocks", "clients", "fell-back", "waits", "locks-accounts", "strangers"}, key) {
		r.Server.Replication = &core.Replication{SQLRunning: true}
	}
	rep := r.Server.Replication
	var err error
	switch key {
	case "executed":
		r.Server.Executed = parseSet(v)
	case "owned":
		r.Server.Owned = parseSet(v)
	case "purged":
		r.Server.Purged = parseSet(v)
	case "retrieved":
		rep.Retrieved = parseSet(v)
	case "source":
		rep.SourceHost = v
	case "io":
		rep.IORunning, rep.IOConnecting, rep.IOError, rep.Refused = v == "on", v == "connecting", "", ""
	case "io-error":
		rep.IORunning, rep.IOConnecting, rep.IOError = false, false, v
	case "refused":
		rep.IORunning, rep.IOConnecting, rep.Refused, rep.IOError = false, true, core.Refused(v), "the source says no"
	case "sql":
		rep.SQLRunning = v == "on"
	case "sql-error":
		rep.SQLRunning, rep.SQLError = false, v
	case "silent", "no-space":
		rep.Silent, rep.NoSpace = key == "silent" && v == "true", key == "no-space" && v == "true"
	case "delay":
		rep.DelaySeconds, err = strconv.Atoi(v)
	case "lag":
		rep.LagSeconds, err = strconv.ParseFloat(v, 64)
	case "acks":
		r.Server.SemiSync.Acks, err = strconv.Atoi(v)
		r.Server.SemiSync.SourceEnabled, r.Server.SemiSync.SourceActive = true, true
	case "acks-order":
		r.Server.SemiSync.OrderEpoch = r.WritableEpoch
		r.Server.SemiSync.Order, err = strconv.ParseInt(v, 10, 64)
	case "blocks":
		r.Server.SemiSync.Blocks = v == "true"
	case "strangers":
		r.Server.SemiSync.Strangers = strings.TrimPrefix(v, "none")
	case "clients":
		r.Server.SemiSync.Clients, err = strconv.Atoi(v)
	case "locks-accounts":
		r.Server.SemiSync.LocksAccounts = true
	case "waits":
		r.Server.SemiSync.WaitSessions, err = strconv.Atoi(v)
	case "fell-back":
		r.Server.SemiSync.SourceActive = false
	default:
		err = fmt.Errorf("unknown word of a report %q", key)
	}
	return err
}

// decide decides once, holds the invariants against it, and keeps its status.
func (w *world) decide(t testing.TB) (core.Observation, core.Plan) {
	t.Helper()
	o := w.observe()
	seen := o
	d := decide(&seen)
	plan := d.Plan
	if w.coverage != nil {
		w.coverage.look(t, d)
	}
	if err := checkInvariants(o, plan); err != nil {
		t.Fatalf("%v\n%s", err, short(printPlan(o, plan)))
	}
	w.cluster.Status, w.memory = plan.Status, plan.Carried
	return o, plan
}

// bound is how many passes a run may take: what takes longer is a loop.
const bound = 60

// run goes on until nothing more happens by itself, and tells what did.
func (w *world) run(t testing.TB) string {
	t.Helper()
	var log strings.Builder
	for pass := 1; ; pass++ {
		if pass > bound {
			t.Fatalf("no end after %d passes:\n%s", bound, short(log.String()))
		}
		o, plan := w.decide(t)
		for _, e := range plan.Effects {
			w.carryOut(e)
		}
		log.WriteString(printPass(plan))
		moved := w.manage()
		soon := plan.Recheck > 0 && plan.Recheck < receiveGrace
		if soon && !moved && !plan.Again {
			w.now = w.now.Add(plan.Recheck)
			w.hearAll()
		}
		if moved || plan.Again || len(plan.Effects) > 0 || soon {
			continue
		}
		log.WriteString("= " + printOutcome(o, plan))
		return log.String()
	}
}

// settleDown brings a cluster up; it is the story of provisioning, untold.
func (w *world) settleDown(t testing.TB) {
	t.Helper()
	w.run(t)
	if p := w.cluster.Status.Phase; p != core.PhaseHealthy {
		t.Fatalf("not healthy: %s, %s", p, w.cluster.Status.Reason)
	}
	for _, in := range w.insts {
		in.truth.Server.Executed = parseSet("a:1-100")
	}
	w.hearAll()
}

func printPass(plan core.Plan) string {
	var b strings.Builder
	for _, ev := range plan.Events {
		b.WriteString("  " + printEvent(ev) + "\n")
	}
	for _, e := range plan.Effects {
		if _, ok := e.(core.Refresh); !ok {
			fmt.Fprintf(&b, "- %s\n", e)
		}
	}
	return b.String()
}

func printEvent(ev core.Event) string {
	kind := ""
	if ev.Warning {
		kind = "Warning "
	}
	return fmt.Sprintf("%s%s: %s", kind, ev.Reason, ev.Message)
}

func printOutcome(o core.Observation, plan core.Plan) string {
	s := plan.Status
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s (%s): %s\n", s.Diagnosis, s.Phase, s.State, s.Reason)
	if op := s.Operation; op != nil {
		fmt.Fprintf(&b, "operation: %s %s", op.Kind, op.Step)
		if op.To != "" {
			fmt.Fprintf(&b, ", %s to %s", op.From, op.To)
		}
		if !op.Deadline.IsZero() {
			fmt.Fprintf(&b, ", until +%s", op.Deadline.Sub(o.Now).Round(1e8))
		}
		b.WriteString("\n")
	}
	if p := s.Promotion; p != nil {
		fmt.Fprintf(&b, "promoted: %s in epoch %d (%s)", p.Instance, p.Epoch, p.Proof)
		if !p.RequiredGTID.IsEmpty() {
			fmt.Fprintf(&b, ", requires %s", p.RequiredGTID)
		}
		if p.RequiredAcks > 0 {
			fmt.Fprintf(&b, ", acks %d", p.RequiredAcks)
		}
		if p.FollowsServer() {
			fmt.Fprintf(&b, ", follows %s", p.Follows)
		}
		b.WriteString("\n")
		if p := p.Pods; strings.Contains(strings.Join(p, " "), core.PodAwaited) {
			fmt.Fprintf(&b, "may be open: %s\n", strings.Join(p, " "))
		}
		if len(s.Members) != len(s.InstanceNames) {
			fmt.Fprintf(&b, "members: %s of %s\n", strings.Join(s.Members, " "), strings.Join(s.InstanceNames, " "))
		}
		if s.TargetPrimary != p.Instance {
			fmt.Fprintf(&b, "wished: %s\n", s.TargetPrimary)
		}
	}
	printLists(&b, s)
	return b.String()
}

func printLists(b *strings.Builder, s core.Status) {
	for _, list := range []struct {
		name  string
		names []string
	}{{"diverged", s.Diverged}, {"broken", s.Broken}} {
		if len(list.names) > 0 {
			fmt.Fprintf(b, "%s: %s\n", list.name, strings.Join(list.names, " "))
		}
	}
	if s.Durable != "" {
		fmt.Fprintf(b, "durable: %s, %s\n", s.Durable, s.DurableMessage)
	}
}

func printPlan(o core.Observation, plan core.Plan) string {
	var b strings.Builder
	b.WriteString(printOutcome(o, plan))
	for _, ev := range plan.Events {
		b.WriteString("  " + printEvent(ev) + "\n")
	}
	for _, e := range plan.Effects {
		fmt.Fprintf(&b, "- %s\n", e)
	}
	for _, why := range plan.Standing {
		fmt.Fprintf(&b, "stands: %s\n", why)
	}
	if plan.Again {
		b.WriteString("again\n")
	}
	if plan.Recheck > 0 {
		fmt.Fprintf(&b, "recheck in %s\n", plan.Recheck)
	}
	return b.String()
}

// build reads "digest" or "digest,platform".
func build(text string) core.Binary {
	digest, platform, other := strings.Cut(text, ",")
	if !other {
		platform = "linux/amd64"
	}
	return core.Binary{Digest: digest, Platform: platform}
}
