package sim

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notSimulated are the functions of the core that the manager or the operator call and the simulation does
// not, by why it does not: what is not simulated is not tried by it.
var notSimulated = map[string]string{
	"of Group Replication, which internal/core/group simulates": "HasQuorum HasView IsQuorate IsSurvivor " +
		"IsUndecided Left MemberWrites RefusesReboot RunsGroup See ServerEnded TakeReboot View",
	"words, metrics and conditions, which nobody decides by": "EndsCommits InstanceIn IsUsedBy Lag NodeName " +
		"NotBefore PassedText Percent Received TakesWrites TimesOf WaitsForNobody WhyUnheard",
	"who acknowledges and is no instance, which the model has not": "IsTime",
	"how data are made, which the model does in one moment":        "AmountAt MakesData Replaced Statements",
	"how a binary is replaced in place":                            "MayNotHandOver",
	"what the server's configuration says":                         "CountsReaders DropsRelayLogs HasLease",
	"which logs are kept, purged and archived; the model's shipper has the promotion's log at hand": "ArchivesIn " +
		"KeepsLogs MayPurge",
	"accounts, of which the model has none":                                "MayChangeAccounts",
	"adopting what a replica has beyond the primary, which a human orders": "RefusesAdoption",
	"readers of a replica, of which the model has none":                    "Lags",
	"a look at the facts of one moment, by a question of the shell's own": "Asked Exists IsKnown IsOfAnotherManager " +
		"Leaving StartsStill",
	"a Pod that is not asked for after all, which is always asked for here": "Unasked",
	"when to look again: the model looks more often":                        "HasMoved IsAtRest UntilIsolationLook",
	"a comparison that the model makes without copying reports":             "WithoutPositions",
}

// TestWhatTheShellsAskOfTheCoreIsSimulated holds the simulation to what it is for: a rule of the core that only
// the product runs is tried by nothing but its own tests. A name is enough to find it by.
func TestWhatTheShellsAskOfTheCoreIsSimulated(t *testing.T) {
	exported := namesIn(t, exportedFunctions, "../core", "../core/agent")
	asked := namesIn(t, selectors, "../instance", "../operator")
	simulated := namesIn(t, selectors, ".", "judge")
	listed := map[string]bool{}
	for why, names := range notSimulated {
		for _, name := range strings.Fields(names) {
			listed[name] = true
			if simulated[name] || !asked[name] || !exported[name] {
				t.Errorf("%s (%s) is simulated, or asked by no shell: take it off the list", name, why)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(exported)) {
		if asked[name] && !simulated[name] && !listed[name] {
			t.Errorf("%s: a shell asks it, and the simulation does not: call it there, or list why not", name)
		}
	}
}

func exportedFunctions(n ast.Node) string {
	if f, is := n.(*ast.FuncDecl); is && f.Name.IsExported() {
		return f.Name.Name
	}
	return ""
}

func selectors(n ast.Node) string {
	if s, is := n.(*ast.SelectorExpr); is && s.Sel.IsExported() {
		return s.Sel.Name
	}
	return ""
}

// namesIn are the names that find sees in the files of directories that are not tests.
func namesIn(t *testing.T, find func(ast.Node) string, dirs ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files: %v", dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if name := find(n); name != "" {
					names[name] = true
				}
				return true
			})
		}
	}
	return names
}
