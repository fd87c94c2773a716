package core

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// kindsOf are the kinds of names that a constant of a type may be of.
var kindsOf = map[string][]Kind{
	"Diagnosis":     {KindDiagnosis},
	"OperationKind": {KindOperation},
	"Step":          {KindStep},
	"Proof":         {KindProof},
	"Reason":        {KindEvent, KindRefusal, KindInstance, KindOrder, KindProblem, KindBackup, KindVerify},
}

// sources visits the Go files below a directory that are no tests.
func sources(t *testing.T, dir string, visit func(path string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err == nil {
			visit(path, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryNameIsInTheCatalogueOnce(t *testing.T) {
	entries := Catalogue()
	for i, e := range entries {
		if e.Name == "" || e.Means == "" || !strings.Contains(e.See, ".md") {
			t.Errorf("%+v lacks something", e)
		}
		if slices.ContainsFunc(entries[:i], func(other Entry) bool {
			return other.Name == e.Name && other.Kind == e.Kind
		}) {
			t.Errorf("%s %s is there twice", e.Kind, e.Name)
		}
	}
	sources(t, ".", func(path string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is || len(spec.Values) != 1 {
				return true
			}
			of, _ := spec.Type.(*ast.Ident)
			text, _ := spec.Values[0].(*ast.BasicLit)
			if of == nil || text == nil || kindsOf[of.Name] == nil {
				return true
			}
			name, _ := strconv.Unquote(text.Value)
			if !slices.ContainsFunc(entries, func(e Entry) bool {
				return e.Name == name && slices.Contains(kindsOf[of.Name], e.Kind)
			}) {
				t.Errorf("%s: %s %s is not in the catalogue", path, of.Name, name)
			}
			return true
		})
	})
}

// alsoWords are names that are something else as well: states, activities, words of Go.
var alsoWords = []string{"Fenced", "Failed", "Recovering", "Left", "Busy", "Forbidden", "Problem",
	"Stopping", "Joining", "Bootstrapping", "Leaving"}

// TestNoNameIsSpelt: whoever says a name says the constant, so that no misspelling
// compiles.
func TestNoNameIsSpelt(t *testing.T) {
	isName := map[string]bool{}
	for _, e := range Catalogue() {
		isName[e.Name] = !slices.Contains(alsoWords, e.Name)
	}
	sources(t, "..", func(path string, file *ast.File) {
		if filepath.Dir(path) == "../core" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text, is := n.(*ast.BasicLit); is && text.Kind == token.STRING {
				if name, _ := strconv.Unquote(text.Value); isName[name] {
					t.Errorf("%s spells %s", path, text.Value)
				}
			}
			return true
		})
	})
}
