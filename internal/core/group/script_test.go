package group

import (
	"fmt"
	"path/filepath"
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
//	spec instances=5              change what is wished
//	down c-1 | up c-1             mysqld ends | runs again
//	cut c-1 c-2 | heal c-1 c-2    cut off, from each other part of the group and from the operator
//	deaf c-1 | heard c-1          the operator alone cannot hear its manager | can again
//	gone c-1                      its Pod is gone, and nobody makes another
//	says c-3 primary=c-3          a member lies about who is primary; says c-3 truth
//	holds c-2 1-9 | errant c-2 5  what it holds | holds that the group lacks
//	volume c-2 gone               its volume and Pod are gone
//	pod c-1 stopping|demote|fence|unfence|outdated
//	target c-2 | reinit c-2 | force   what a human asks for
//	slow                          the group does not hand over when it is asked to
//	status lost                   the Cluster's status is lost
//	advance 5s                    time passes
//	decide                        one decision; its effects are not carried out
//	run                           decide, carry out, let managers act, until all is quiet
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts found", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			var w *world
			datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
				switch td.Cmd {
				case "group", "online":
					w = newWorld(number(td, "instances", 3))
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
	case "decide":
		return w.decide()
	case "spec":
		w.cluster.Wanted = number(td, "instances", 3)
	case "advance":
		d, err := time.ParseDuration(names[0])
		if err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(d)
	case "target":
		w.cluster.Status.TargetPrimary = names[0]
	case "reinit":
		w.cluster.Reinit = append(w.cluster.Reinit, names[0])
	case "force":
		w.cluster.Group.ForceQuorum = true
	case "slow":
		w.slow = true
	case "status":
		w.cluster.Status = core.Status{}
	default:
		for _, name := range names[:max(1, len(names)-extra(td.Cmd))] {
			w.happens(t, td, w.get(name))
		}
		w.settle()
	}
	return ""
}

// extra is how many arguments of a verb are no instances.
func extra(verb string) int {
	switch verb {
	case "says", "holds", "errant", "volume", "pod":
		return 1
	}
	return 0
}

func (w *world) happens(t *testing.T, td *datadriven.TestData, in *instance) {
	last := td.CmdArgs[len(td.CmdArgs)-1]
	switch td.Cmd {
	case "down":
		in.up, in.joined, in.stale = false, false, nil
	case "up":
		in.up = true
	case "cut":
		in.part, in.deaf = 1, true
	case "heal":
		in.part, in.deaf = 0, false
	case "deaf":
		in.deaf = true
	case "heard":
		in.deaf = false
	case "gone":
		in.up, in.joined, in.deaf = false, false, true
	case "volume":
		w.leave(in.name)
		*in = instance{name: in.name, ordinal: in.ordinal, data: core.DataEmpty}
	case "holds":
		in.executed = gtid.MustParse("11111111-1111-1111-1111-111111111111:" + last.Key)
	case "errant":
		in.errant = gtid.MustParse("22222222-2222-2222-2222-222222222222:" + last.Key)
		in.up = true
		w.leave(in.name)
	case "says":
		in.lie = nil
		if last.Key == "primary" {
			lie := *w.says(in)
			lie.Members = nil
			for _, m := range w.says(in).Members {
				m.Role = core.MemberSecondary
				if strings.HasPrefix(m.Host, last.Vals[0]+".") {
					m.Role = core.MemberPrimary
				}
				lie.Members = append(lie.Members, m)
			}
			in.lie = &lie
		}
	case "pod":
		w.podIs(t, in, last.Key)
	default:
		t.Fatalf("nobody knows the verb %s", td.Cmd)
	}
}

func (w *world) podIs(t *testing.T, in *instance, what string) {
	switch what {
	case "stopping":
		in.pod.Terminating, in.pod.Grace = true, 30*time.Second
	case "demote":
		in.pod.DemoteRequested = true
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
	plan := Decide(w.observe())
	w.cluster.Status = plan.Status
	var b strings.Builder
	for _, e := range plan.Events {
		fmt.Fprintf(&b, "  %s: %s\n", e.Reason, e.Message)
	}
	for _, e := range plan.Effects {
		fmt.Fprintf(&b, "- %s\n", e)
	}
	return b.String() + w.tell()
}
