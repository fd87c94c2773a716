package sim

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notSimulated are the functions of the core that the manager or the operator call and the simulation does
// not, by why it does not: what is not simulated is not tried by it.
var notSimulated = map[string]string{
	"of Group Replication, which internal/core/group simulates": "agent.Cluster.Recoveries agent.Facts.RefusesReboot " +
		"agent.MemberFacts.Left agent.MemberFacts.MayOpen agent.MemberFacts.Remembered agent.MemberFacts.See " +
		"agent.MemberFacts.ServerEnded " +
		"agent.MemberFacts.TakeReboot agent.MemberFacts.Tried agent.MemberWrites agent.Position.After " +
		"core.GroupView.IsQuorate core.GroupView.IsSurvivor core.Server.HasView core.Server.View " +
		"core.Topology.RunsGroup",
	"words, metrics and conditions, which nobody decides by": "core.Diagnosis.EndsCommits core.InstanceIn " +
		"core.Fact.NotBefore core.Fact.Received core.Instance.WhyUnheard core.Observation.Archive " +
		"core.Problem.String core.Promotion.IsUsedBy core.Report.TakesWrites core.Restore.PassedText " +
		"core.Server.Lag core.Status.IsOf core.Status.WaitsForNobody",
	"who acknowledges and is no instance, which the model has not": "agent.AckLooks.After " +
		"agent.AckLooks.Failed agent.AckLooks.Fails agent.AckLooks.IsTime",
	"how data are made, which the model does in one moment": "agent.Activity.MakesData agent.Cached.Replaced " +
		"core.AmountAt core.DataOrigin.IsElsewhere",
	"what stands in the binary log of errant transactions, which the model does not read": "agent.Errant.Begins " +
		"agent.Errant.Found agent.Errant.Statements agent.Errant.TimesOf",
	"how a binary is replaced in place": "agent.Facts.MayNotHandOver core.Successor.Refused",
	"what the server's configuration says": "agent.Cached.DropsRelayLogs core.Topology.CountsReaders " +
		"core.Topology.HasLease",
	"which logs are kept, purged and archived; the model's shipper has the promotion's log at hand": "" +
		"agent.Cluster.ArchivesIn agent.Facts.KeepsLogs agent.Facts.MayPurge",
	"accounts, of which the model has none": "agent.MayChangeAccounts " +
		"agent.PasswordFacts.Step",
	"tokens of managers, of which the model has none": "agent.Token.Answered " +
		"agent.Token.IsRefused",
	"adopting what a replica has beyond the primary, which a human orders": "agent.RefusesAdoption",
	"readers of a replica, of which the model has none":                    "agent.Lags",
	"a look at the facts of one moment, by a question of the shell's own": "agent.Cached.Asked " +
		"agent.Facts.StartsStill agent.Residence.IsKnown core.Report.IsOfAnotherManager",
	"a Pod that is not asked for after all, which is always asked for here": "core.NotMade.Unasked",
	"when to look again: the model looks more often": "agent.Facts.UntilIsolationLook core.Plan.IsAtRest " +
		"core.Report.HasMoved core.Report.IsPrimary",
	"a comparison that the model makes without copying reports": "core.Report.WithoutPositions",
}

// TestWhatTheShellsAskOfTheCoreIsSimulated holds the simulation to what it is for: a rule of the core that only
// the product runs is tried by nothing but its own tests. A function is known by its package, its type and its name.
func TestWhatTheShellsAskOfTheCoreIsSimulated(t *testing.T) {
	c := newCalls(t, "instance", "operator", "sim", "sim/judge")
	asked, simulated := c.ofCore(t, "instance", "operator"), c.ofCore(t, "sim", "sim/judge")
	listed := map[string]bool{}
	for why, names := range notSimulated {
		for _, name := range strings.Fields(names) {
			listed[name] = true
			if simulated[name] || !asked[name] {
				t.Errorf("%s (%s) is simulated, or asked by no shell: take it off the list", name, why)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if !simulated[name] && !listed[name] {
			t.Errorf("%s: a shell asks it, and the simulation does not: call it there, or list why not", name)
		}
	}
}

const internal = "cnmsql.co/internal/"

// calls finds what packages call.
type calls struct {
	files   *token.FileSet
	imports types.Importer
}

// newCalls has the packages, which are below internal, and all that they import compiled.
func newCalls(t *testing.T, packages ...string) calls {
	t.Helper()
	list := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, name := range packages {
		list = append(list, internal+name)
	}
	out, err := exec.Command("go", list...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	files := token.NewFileSet()
	return calls{files, importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
}

// ofCore are the functions of the core that the files of packages name which are no tests.
func (c calls) ofCore(t *testing.T, packages ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, name := range packages {
		used := types.Info{Uses: map[*ast.Ident]types.Object{}}
		conf := types.Config{Importer: c.imports}
		if _, err := conf.Check(internal+name, c.files, c.parsed(t, name), &used); err != nil {
			t.Fatal(err)
		}
		for _, of := range used.Uses {
			if f, is := of.(*types.Func); is && f.Exported() {
				names[nameInCore(f)] = true
			}
		}
	}
	delete(names, "")
	return names
}

func (c calls) parsed(t *testing.T, name string) (parsed []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", name, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: no files: %v", name, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(c.files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	return parsed
}

// nameInCore is what a function of the core is known by; "" for any other, and for one of an interface.
func nameInCore(f *types.Func) string {
	if f.Pkg() == nil || f.Pkg().Path() != internal+"core" && f.Pkg().Path() != internal+"core/agent" {
		return ""
	}
	recv := f.Signature().Recv()
	if recv == nil {
		return f.Pkg().Name() + "." + f.Name()
	}
	of := recv.Type()
	if p, is := of.(*types.Pointer); is {
		of = p.Elem()
	}
	named, is := of.(*types.Named)
	if !is || types.IsInterface(named) {
		return ""
	}
	return f.Pkg().Name() + "." + named.Obj().Name() + "." + f.Name()
}
