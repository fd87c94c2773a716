package group

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// TestScripts runs the stories under testdata. The verbs:
//
//	group instances=3             nothing exists yet
//	online instances=3            an established group, c-1 is the primary
//	spec instances=5              change what is wished; size=2 is that of volumes, in bytes; delay=20 and
//	                              pause=2 are the bounds of a switchover, in seconds; stuck=(c-4,c-5) are
//	                              those whose Pods do not start when they are made, until: pulled c-4
//	down c-1 | starts c-1 | up c-1   mysqld ends | runs again, and does not answer yet | answers
//	stops c-2                     mysqld leaves the group, and ends
//	state c-2 RECOVERING          another state than ONLINE: the group has it catch up; or
//	                              suspects it (UNREACHABLE); or it has left in ERROR, and
//	                              its manager does not notice
//	cut c-1 c-2 | heal c-1 c-2    cut off, from each other part of the group and from the operator
//	lags c-2 | follows c-2        applies what is older than the user wants to be read | no more
//	token c-2 refused|taken       whether the API server knows its manager
//	room c-2 ample|low|full|hangs how much of its volume is free; nothing, and its commits hang
//	silent c-1 | stalls c-1       its mysqld answers nobody | its volume completes no write; its
//	                              threads of the group live on
//	writes c-1                    its volume completes writes again
//	port c-1 taken|free           whether it can make a group
//	unfit c-3                     its mysqld runs, and joins no group as its Pod was made; one made from
//	                              a changed spec does
//	deaf c-1 | heard c-1          the operator alone cannot hear its manager | can again
//	gone c-1                      its Pod is gone, and nobody makes another
//	says c-3 primary=c-3          a member lies about who is primary; says c-3 truth
//	says c-3 state=ERROR          it says so of itself, and the others have not noticed yet
//	says c-3 certificates=Former  how those compare that it joined with
//	holds c-2 1-9 | errant c-2 5  what it holds | holds that the group lacks
//	removed c-3                   its data was removed by a clone that did not end
//	volume c-2 gone|deleting      its volume and Pod are gone | its volume goes when its Pod does
//	volume c-2 removed            its claim is gone by force, and its Pod runs on
//	volume c-2 kept               it is to stay, and is no instance's any more; the Pod runs on
//	pod c-1 stopping|demote|undemote|fence|unfence|outdated
//	target c-2 | reinit c-2 | force [view]   what a human asks for; target none withdraws the wish
//	accept c-1                    that it goes on whatever it lacks
//	automatic                     after a total outage, no human is waited for
//	operator lost                 another begins, and knows what the status records
//	release | mysql 9.8.0         managers of another release | of Pods that are made from now on
//	slow                          the group does not hand over when it is asked to
//	problem NameTaken | none      something outside hinders the cluster: the input says what | no more
//	status lost|epoch=5           the Cluster's status is lost | is set back, to when nobody was left out;
//	                              primary=c-1 without=c-2: but that, and to when that was the primary;
//	                              new=c-2: to when there was one member, and that was being made
//	advance 5s                    time passes
//	decide                        one decision; its effects are not carried out
//	step                          one pass of those that run makes
//	run                           decide, carry out, let managers act, until all is quiet
//	members                       what the status says of each
//	recoveries                    when the group went on without some, by the status, and what those held who did
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts found", err)
	}
	seen := &coverage{rows: map[string]bool{}}
	ran := 0
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			var w *world
			ran++
			datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
				switch td.Cmd {
				case "group", "online":
					w = newWorld(number(td, "instances", 3))
					w.coverage = seen
					if td.Cmd == "online" {
						w.run()
						w.now = w.now.Add(time.Minute)
						if s := w.cluster.Status; s.Phase != core.PhaseHealthy {
							t.Fatalf("the model group is not healthy: %s", w.tell())
						}
					}
					return ""
				}
				return w.command(t, td)
			})
		})
	}
	if ran == len(files) {
		seen.check(t)
	}
}

func number(td *datadriven.TestData, name string, otherwise int) int {
	for _, a := range td.CmdArgs {
		if a.Key == name {
			n, err := strconv.Atoi(a.Vals[0])
			if err != nil {
				panic(err)
			}
			return n
		}
	}
	return otherwise
}

func (w *world) command(t *testing.T, td *datadriven.TestData) string {
	var names []string
	for _, a := range td.CmdArgs {
		names = append(names, a.Key)
	}
	switch td.Cmd {
	case "run":
		return w.run()
	case "step":
		text, _ := w.pass()
		return text + w.tell()
	case "decide":
		return w.decide()
	case "members", "recoveries":
		return w.recorded(td.Cmd)
	case "spec", "problem", "adopt":
		w.specify(td)
	case "release":
		w.cluster.Manager = core.Binary{Digest: "new", Platform: "linux/amd64"}
		for _, in := range w.all {
			in.manager = core.Binary{Digest: "old", Platform: "linux/amd64"}
		}
	case "advance":
		d, err := time.ParseDuration(names[0])
		if err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(d)
	case "target":
		w.cluster.Status.TargetPrimary = strings.TrimPrefix(names[0], "none")
	case "former":
		w.leftOf(t, td, names[0])
	case "reinit":
		w.cluster.Reinit = append(w.cluster.Reinit, core.ReinitRequest{Instance: names[0]})
	case "force":
		w.cluster.Group.ForceQuorum = true
		if len(names) > 0 {
			w.cluster.Group.ForceView = names[0]
		}
	case "accept":
		w.accept(names[0])
	case "operator":
		w.loseOperator()
	case "automatic":
		w.cluster.Group.RecoverOutage = true
	case "slow":
		w.slow = true
	case "mysql":
		w.mysql = names[0]
	case "status":
		w.setBack(td)
	default:
		for _, name := range names[:max(1, len(names)-extra(td.Cmd))] {
			w.happens(t, td, w.get(name))
		}
		w.settle()
	}
	return ""
}

// accept is a human's word that what an instance lacks may be lost.
func (w *world) accept(instance string) {
	w.cluster.Override = &core.Override{To: instance, Epoch: w.cluster.Status.Epoch}
	if w.cluster.Status.AdoptedFrom != "" { // before there is a group
		w.cluster.Override.Epoch = 0
	}
}

// leftOf has a deleted Cluster have left the volume of an instance.
func (w *world) leftOf(t *testing.T, td *datadriven.TestData, name string) {
	in := instance{executed: gtid.MustParse(groupUUID + ":1-9"), left: core.LineageOf("g-old", nil)}
	_, err := fmt.Sscanf(name, "c-%d", &in.ordinal)
	for _, arg := range td.CmdArgs[1:] {
		switch value := arg.Vals[0]; arg.Key {
		case "executed":
			in.executed, err = gtid.Parse(groupUUID + ":" + value)
		case "recovery":
			_, err = fmt.Sscan(value, &in.left.Recovery)
		case "group":
			in.left.Group = strings.TrimPrefix(value, "none")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if in.left.Group == "" {
		in.left = core.Lineage{}
	}
	if w.formers == nil {
		w.formers = map[string]instance{}
	}
	w.formers[name] = in
	w.cluster.FormerVolumes = append(w.cluster.FormerVolumes, core.FormerVolume{Instance: name, UID: "volume-" + name,
		Of: "old"})
}

// setBack has a status that was written before anybody was left out, or diverged, or none.
func (w *world) setBack(td *datadriven.TestData) {
	s := &w.cluster.Status
	g := *s.Group
	for _, a := range td.CmdArgs {
		switch a.Key {
		case "lost":
			*s = core.Status{}
			return
		case "epoch":
			s.Epoch, s.Group, s.Diverged = int64(number(td, a.Key, 0)), &g, nil
			g.LeftOut, g.Recoveries = nil, nil
		case "primary":
			s.CurrentPrimary = a.Vals[0]
		case "new":
			g.New, g.ViewMax = a.Vals, 1
		case "without":
			for _, name := range a.Vals {
				g.LeftOut = append(g.LeftOut, core.LeftOut{Instance: name, Held: w.get(name).holds()})
			}
		}
	}
}

// specify changes what is wished.
func (w *world) specify(td *datadriven.TestData) {
	if td.Cmd == "problem" {
		w.cluster.Problem = nil
		if name := td.CmdArgs[0].Key; name != "none" {
			w.cluster.Problem = &core.Problem{Reason: core.Reason(name), Message: strings.TrimSpace(td.Input)}
		}
		return
	}
	if td.Cmd == "adopt" {
		w.cluster.AdoptFrom = td.CmdArgs[0].Key
		return
	}
	w.cluster.Wanted = number(td, "instances", w.cluster.Wanted)
	for _, a := range td.CmdArgs {
		if a.Key == "stuck" {
			w.pulls = func(name string) bool { return slices.Contains(a.Vals, name) }
		}
		if a.Key == "ignored" {
			w.cluster.Group.WithoutEffect = slices.DeleteFunc(a.Vals, func(f string) bool { return f == "" })
		}
	}
	w.cluster.VolumeSize.Bytes = int64(number(td, "size", int(w.cluster.VolumeSize.Bytes)))
	w.cluster.VolumeSize.Text = strconv.FormatInt(w.cluster.VolumeSize.Bytes, 10)
	for name, bound := range map[string]*time.Duration{
		"delay": &w.cluster.SwitchoverLimit, "pause": &w.cluster.SwitchoverPause,
	} {
		*bound = time.Duration(number(td, name, int(*bound/time.Second))) * time.Second
	}
}

// extra is how many arguments of a verb are no instances.
func extra(verb string) int {
	switch verb {
	case "says", "holds", "errant", "volume", "pod", "state", "room", "port", "token":
		return 1
	}
	return 0
}

func (w *world) happens(t *testing.T, td *datadriven.TestData, in *instance) {
	last := td.CmdArgs[len(td.CmdArgs)-1]
	switch td.Cmd {
	case "stops":
		w.leave(in.name)
		in.up, in.held = false, true
	case "state":
		w.stateIs(in, core.MemberState(last.Key))
	case "down":
		w.endMysqld(in)
		in.held = true
	case "up":
		in.up, in.starting, in.held = in.m.view != nil, false, false
	case "starts":
		in.up, in.starting = true, true
	case "cut":
		in.cut(1)
	case "heal":
		in.heal()
	case "lags":
		in.lags = true
	case "follows":
		in.lags = false
	case "token":
		in.unknown = last.Key == "refused"
	case "room":
		in.room = &core.Room{Size: 1 << 30, Low: last.Key != "ample", Full: last.Key == "full" || last.Key == "hangs"}
		in.hangs = last.Key == "hangs"
	case "silent", "stalls", "writes":
		w.hang(in, td.Cmd)
	case "port":
		in.taken = last.Key == "taken"
	case "unfit":
		in.unfit = true
	case "deaf":
		in.deaf = true
	case "heard":
		in.deaf, in.blind = false, false
	case "gone":
		w.endMysqld(in)
		in.held, in.deaf, in.blind = true, true, true
	case "volume":
		w.volumeIs(in, last.Key)
	case "holds":
		in.executed = gtid.MustParse(groupUUID + ":" + last.Key)
	case "errant":
		in.errant = gtid.MustParse("22222222-2222-2222-2222-222222222222:" + last.Key)
		w.leave(in.name)
	case "removed":
		in.removed = true
	case "says":
		in.lie = w.lie(in, last)
	case "pulled":
		in.pod.NeverStarted = false
	case "pod":
		w.podIs(t, in, last.Key)
	default:
		t.Fatalf("nobody knows the verb %s", td.Cmd)
	}
}

// volumeIs has its volume go when its Pod does, or its claim be gone by force, or be gone with its Pod.
func (w *world) volumeIs(in *instance, what string) {
	switch what {
	case "deleting":
		in.vol.Deleting = true
		return
	case "removed":
		in.vol = core.Volume{}
		return
	case "kept":
		in.vol = core.Volume{Exists: true, UID: in.vol.UID, Deleting: true}
		w.cluster.KeptVolumes = append(w.cluster.KeptVolumes, in.name)
		return
	}
	w.leave(in.name)
	w.empty(in)
}

// hang has mysqld answer nobody, or its volume complete no write, or writes again.
func (w *world) hang(in *instance, how string) {
	if how == "silent" {
		in.silentSince = w.now
		return
	}
	if in.stalled = how == "stalls"; in.killed {
		w.endMysqld(in)
	}
}

func (w *world) stateIs(in *instance, state core.MemberState) {
	in.idle = state == core.MemberError
	switch in.state = state; state {
	case core.MemberOnline:
		in.state = ""
	case core.MemberError:
		w.leave(in.name)
	}
}

// lie is what a member says whatever is true; nil for the truth.
func (w *world) lie(in *instance, what datadriven.CmdArg) *core.GroupView {
	in.lie = nil
	lie := *w.says(in)
	switch what.Key {
	case "state":
		lie.State = core.MemberState(what.Vals[0])
	case "certificates":
		lie.Certificates = core.MemberCertificates(what.Vals[0])
	case "primary":
		lie.Members = nil
		for _, m := range w.says(in).Members {
			m.Role = core.MemberSecondary
			if strings.HasPrefix(m.Host, what.Vals[0]+".") {
				m.Role = core.MemberPrimary
			}
			lie.Members = append(lie.Members, m)
		}
	default:
		return nil
	}
	return &lie
}

// recorded is what the status says of one or the other.
func (w *world) recorded(what string) string {
	if what == "recoveries" {
		return w.recoveries()
	}
	return w.members()
}

// members are what the status says of each.
func (w *world) members() string {
	var b strings.Builder
	for _, m := range w.cluster.Status.Group.Members {
		fmt.Fprintf(&b, "%s %s %s", m.Instance, m.State, cmp.Or(string(m.Role), "-"))
		if !m.Reachable {
			b.WriteString(", not heard")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// recoveries are what the status says of them.
func (w *world) recoveries() string {
	var b strings.Builder
	for _, r := range w.cluster.Status.Group.Recoveries {
		fmt.Fprintf(&b, "epoch %d: %s\n", r.Epoch, cmp.Or(r.Held.String(), "nobody knows"))
	}
	return b.String()
}

func (w *world) podIs(t *testing.T, in *instance, what string) {
	switch what {
	case "stopping":
		in.pod.Terminating, in.pod.Grace = true, 30*time.Second
	case "demote", "undemote":
		in.pod.DemoteRequested = what == "demote"
	case "fence":
		in.pod.FencingRequested = true
	case "unfence":
		in.pod.FencingRequested = false
	case "outdated":
		in.pod.Current = false
	default:
		t.Fatalf("nobody knows what a Pod is that is %s", what)
	}
}

func (w *world) decide() string {
	_, text := w.plan()
	return text + w.tell()
}
