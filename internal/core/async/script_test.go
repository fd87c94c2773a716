package async

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observed"
)

// TestScripts runs the stories under testdata. Each file starts again; the verbs:
//
//	cluster instances=3 [durability= min= delay= limit= pause= lease=off
//	  max-behind= max-lag= preferred= min-time= stability= manager= from-backup=on]  nothing exists yet
//	healthy instances=3 [...]     an established cluster, c-1 is the primary
//	spec instances= durability= min= delay= limit=        change what is wished
//	pod c-2 keeps-manager=why     its manager takes no successor
//	instance c-2 state= executed= ... [read=-1s]  change what its manager says, and hear it;
//	  its mysqld was asked before
//	lost c-2 [why=] | cut c-2 | found c-2  its manager cannot be reached | nor can mysqld | both can be again
//	pod c-1 gone|terminating=|terminated|rejected|ready=|outdated|old-image|new-image|waiting=|node=|demote
//	volume c-1 gone|deleting|unbound|kept|asks=3Gi|refused=why
//	node c-1 gone|out-of-service|draining|not-ready, off for long unless "lives"
//	unseen c-1                    what Kubernetes says of it is not known
//	held c-1 by=NAME              a finalizer holds its Pod or claim
//	slow c-2 | quick c-2          its manager does not act by itself | does
//	status target= ...            somebody changes the status
//	image mysql:9.7.4             the spec's is another now; its name has the version
//	problem Reason message        something outside hinders the cluster
//	aside Reason message          something outside is wrong, and hinders nothing; none: no more
//	service c-ro wanted|deleting  a Service of its own is seen, which leads to a role
//	lease holder=c-9 epoch=99     somebody writes the record of the primary's lease
//	foreign pods=a,b volumes=x    they carry an instance's labels and are not the cluster's
//	restart-operator [clock=-10m] all that is not in the status is forgotten; the new one's
//	  clock may show another time
//	advance 5s                    time passes, leases and vouches are kept, everybody is heard again
//	reinit c-2 [epoch=1 volume=u] a human asks for its data to be recreated [bound already]
//	accept-loss c-2               a human promotes it whatever is lost; in the present epoch, or that of epoch=
//	observed                      all that is known, word by word as internal/observed tells it;
//	  nothing acts, and each decide is one of this moment
//	decide                        one decision; its status is kept, its effects are not carried out
//	run                           decide, carry out, let managers act, until all is quiet
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts found", err)
	}
	seen := coverage{}
	ran := 0
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			s := &script{t: t, coverage: seen}
			ran++
			datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
				s.t = t
				return short(s.command(td))
			})
		})
	}
	if ran == len(files) {
		seen.check(t)
	}
}

type script struct {
	t *testing.T
	w *world
	// seen is an observation that was told as a whole; nil for one of the world.
	seen     *core.Observation
	coverage coverage
}

// args are a verb's arguments by name; positional ones have empty values.
type args struct {
	name string
	vals map[string]string
	keys []string
}

func argsOf(td *datadriven.TestData) args {
	a := args{vals: map[string]string{}}
	for i, arg := range td.CmdArgs {
		if i == 0 && len(arg.Vals) == 0 {
			a.name = arg.Key
			continue
		}
		a.keys = append(a.keys, arg.Key)
		a.vals[arg.Key] = strings.ReplaceAll(strings.Join(arg.Vals, ","), "_", " ")
	}
	return a
}

// list is an argument's names; none without it.
func (a args) list(key string) []string {
	if a.vals[key] == "" {
		return nil
	}
	return strings.Split(a.vals[key], ",")
}

func (s *script) command(td *datadriven.TestData) string {
	a := argsOf(td)
	switch td.Cmd {
	case "cluster", "healthy":
		s.begin(a, td.Cmd == "healthy")
	case "spec":
		s.spec(a)
	case "status":
		s.status(a)
	case "server":
		s.server(a)
	case "image":
		s.w.changeImage(a.name)
	case "problem", "aside":
		s.problem(td, a)
	case "foreign":
		s.w.cluster.ForeignPods, s.w.cluster.ForeignVolumes = a.list("pods"), a.list("volumes")
	case "service":
		s.w.cluster.Services = append(s.w.cluster.Services, core.Service{Name: a.name, UID: "uid-of-" + a.name,
			Wanted: slices.Contains(a.keys, "wanted"), Deleting: slices.Contains(a.keys, "deleting")})
	case "lease":
		epoch, _ := strconv.ParseInt(a.vals["epoch"], 10, 64)
		s.w.writeLease(a.vals["holder"], epoch)
	case "adopt":
		s.w.cluster.AdoptFrom = a.name
	case "former":
		s.former(a)
	case "reinit":
		s.reinit(a)
	case "accept-loss":
		s.acceptLoss(a)
	case "restart-operator":
		if by := a.vals["clock"]; by != "" {
			s.w.setClock(s.duration(by))
		}
		s.w.restartOperator()
	case "advance":
		s.w.advance(s.duration(a.name))
	case "observed":
		o, err := observed.Read(td.Input, epochStart)
		s.must(err)
		s.seen = &o
	case "decide":
		if s.seen != nil {
			return s.decideSeen()
		}
		return printPlan(s.w.decide(s.t))
	case "run":
		return s.w.run(s.t)
	default:
		return s.about(td.Cmd, a)
	}
	return ""
}

// begin makes a Cluster of three with empty volumes, or one that is healthy.
func (s *script) begin(a args, healthy bool) {
	s.seen = nil
	s.w = newWorld(core.Cluster{Wanted: 3, Durability: core.Durability{Mode: core.DurabilityAsync},
		SwitchoverLimit: time.Minute})
	s.w.coverage = s.coverage
	s.spec(a)
	if healthy {
		s.w.settleDown(s.t)
	}
}

// about are the verbs that name an instance.
func (s *script) about(verb string, a args) string {
	in := s.w.add(a.name)
	switch verb {
	case "instance":
		in.pod.NeverStarted = false
		var age time.Duration
		for _, key := range a.keys {
			if key == "read" {
				age = s.duration(a.vals[key])
				continue
			}
			s.must(setReport(&in.truth, key, a.vals[key]))
		}
		s.w.hear(in)
		if age != 0 {
			in.heard.Report = core.Known(in.truth, s.w.now.Add(age), s.w.now)
		}
	case "backup":
		in.backedUp = a.keys[0] == "begins"
	case "pod":
		for _, key := range a.keys {
			s.setPod(in, key, a.vals[key])
		}
	case "volume":
		s.setVolume(in, a.keys[0], a.vals[a.keys[0]])
	case "node":
		s.setNode(in, a.keys)
	case "lost":
		s.w.lose(in)
		s.w.unheard[in.name] = a.vals["why"]
	case "cut":
		in.cut = true
		s.w.lose(in)
		s.w.manage()
	case "found":
		in.lost, in.cut = false, false
		delete(s.w.unheard, in.name)
		s.w.hear(in)
	case "unseen":
		in.blind = true
	case "held":
		in.heldBy = a.vals["by"]
	case "not-made":
		in.notMade = core.NotMade{}
		for _, name := range a.keys {
			in.notMade.Refused(name)
		}
	case "slow":
		s.w.slow[in.name] = true
	case "quick":
		delete(s.w.slow, in.name)
	default:
		s.t.Fatalf("unknown verb %q", verb)
	}
	return ""
}

func (s *script) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) spec(a args) {
	c := &s.w.cluster
	for _, key := range append(a.keys, "") {
		var err error
		switch v := a.vals[key]; key {
		case "instances":
			c.Wanted, err = strconv.Atoi(v)
		case "size":
			c.VolumeSize, err = sizeOf(v)
		case "keep-volumes":
			c.KeepVolumes = v != "off"
		case "follows":
			c.FirstData, c.Follows = core.OriginImported, strings.Trim(v, "-")
		case "address":
			c.SourceAddress = v
		case "from-backup":
			c.FirstData = core.OriginRestored
			if v == "off" {
				c.FirstData = core.OriginInitialized
			}
		case "durability":
			c.Durability.Mode = core.DurabilityMode(v)
		case "min":
			c.Durability.Min, err = strconv.Atoi(v)
		case "delay":
			c.FailoverDelay, err = time.ParseDuration(v)
		case "pause":
			c.SwitchoverPause, err = time.ParseDuration(v)
		case "limit":
			c.SwitchoverLimit, err = time.ParseDuration(v)
		case "lease":
			c.PrimaryLease = v != "off"
		case "generation":
			c.Generation, err = strconv.ParseInt(v, 10, 64)
		case "max-behind":
			n, _ := strconv.ParseUint(v, 10, 64)
			c.Policy.MaxTransactionsBehind = &n
		case "max-lag":
			c.Policy.MaxReplicationLag, err = time.ParseDuration(v)
		case "preferred":
			c.Policy.Preferred = strings.Split(v, ",")
		case "min-time":
			c.Policy.MinTimeBetweenFailover, err = time.ParseDuration(v)
		case "manager":
			c.Manager = build(v)
		case "stability":
			c.Policy.StabilityWindow, err = time.ParseDuration(v)
		case "":
		default:
			err = fmt.Errorf("unknown spec %q", key)
		}
		s.must(err)
	}
}

func (s *script) status(a args) {
	st := &s.w.cluster.Status
	for _, key := range append([]string{a.name}, a.keys...) {
		switch key {
		case "":
		case "target":
			st.TargetPrimary = a.vals[key]
		case "lost":
			*st = core.Status{}
		case "members":
			st.Members = nil
		case "acks":
			n, err := strconv.Atoi(a.vals[key])
			s.must(err)
			st.Promotion.RequiredAcks, st.Promotion.OrderedAcks = n, n
		case "awaited":
			st.Promotion.Pods = append(st.Promotion.Pods, core.PodAwaited)
		case "phase":
			st.Phase = core.Phase(a.vals[key])
		default:
			s.t.Fatalf("unknown status %q", key)
		}
	}
}

func (s *script) problem(td *datadriven.TestData, a args) {
	p := core.Problem{Reason: core.Reason(a.name), Message: strings.TrimSpace(td.Input)}
	switch {
	case td.Cmd == "aside" && a.name == "none":
		s.w.cluster.Asides = nil
	case td.Cmd == "aside":
		s.w.cluster.Asides = []core.Problem{p}
	case a.name == "none":
		s.w.cluster.Problem = nil
	default:
		s.w.cluster.Problem = &p
	}
}

func (s *script) setPod(in *inst, key, value string) {
	switch key {
	case "gone":
		in.pod = core.Pod{}
		in.heard.Lose()
	case "deleted":
		s.w.endPod(in)
	case "new":
		s.w.startPod(in)
		in.heard.Lose()
		if value != "" {
			in.pod.Node, in.truth.Node, in.truth.VolumeLocked = value, value, true
		}
	case "awaited":
		in.pod.Awaited = value
	case "keeps-manager":
		in.keepsManager = value
	case "unscheduled":
		in.pod.Node, in.pod.NeverStarted = "", true
		in.heard.Lose()
	case "terminating":
		in.pod.Terminating, in.truth.Terminating, in.pod.Grace = true, true, 30*time.Minute
		if value != "" {
			grace, err := time.ParseDuration(value)
			s.must(err)
			in.pod.Grace = grace
		}
		s.w.hear(in)
	case "terminated":
		in.pod.Terminated = true
		in.heard.Lose()
	case "rejected": // and its manager can no longer be reached
		in.pod.Rejected = true
		s.w.lose(in)
	case "ready":
		in.pod.Ready = value == "yes"
	case "outdated", "current":
		in.pod.Current = key == "current"
	case "image":
		in.pod.Image = value
	case "old-image", "new-image":
		in.pod.OldImage = key == "old-image"
	case "unstarted":
		in.pod.NeverStarted = true
		in.heard.Lose()
	case "demote", "undemote":
		in.pod.DemoteRequested = key == "demote"
	case "fence", "unfence":
		in.pod.FencingRequested = key == "fence"
	case "node":
		in.pod.Node = value
	case "waiting":
		in.pod.Waiting = waitsFor(value)
	default:
		s.t.Fatalf("unknown pod fact %q", key)
	}
}

// waitsFor reads "reason:message".
func waitsFor(text string) *core.Problem {
	reason, message, _ := strings.Cut(text, ":")
	if text == "" {
		return nil
	}
	return &core.Problem{Reason: core.Reason(reason), Message: message}
}
