// Command lint checks the house rules that no common linter knows: a function
// fits on a screen, product code does not sleep, imports run downwards only, one file knows
// what a durability mode means and one what a topology implies, an unknown fact is no zero value, an
// end-to-end test says what it shows, and the tests, headings, functions, numbers and constants that documents name are
// there.
//
// Rules that the tree broke before they were made are ratcheted: baseline.txt holds how often
// each package breaks them, and a package that breaks one more often fails. -baseline writes the
// present counts.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// screen is the number of lines that a function may have.
const screen = 60

func main() {
	baseline := flag.Bool("baseline", false, "write "+baselineFile+" instead of holding the tree to it")
	flag.Parse()
	checks := []func(root string) ([]string, error){
		check, checkNamed, checkGoNames, checkLinks, checkFigures, checkQuoted, checkMap, checkRatchet,
	}
	if *baseline {
		checks = []func(root string) ([]string, error){writeBaseline}
	}
	if !run(checks) && !*baseline {
		os.Exit(1)
	}
}

// run prints the complaints of all checks, and reports whether there are none. An error ends it.
func run(checks []func(root string) ([]string, error)) (ok bool) {
	ok = true
	for _, c := range checks {
		complaints, err := c(".")
		for _, c := range complaints {
			fmt.Println(c)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "lint:", err)
			os.Exit(1)
		}
		ok = ok && len(complaints) == 0
	}
	return ok
}

func check(root string) (complaints []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || isGenerated(path) {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		l := &linter{path: filepath.ToSlash(path), files: files}
		l.check(file)
		complaints = append(complaints, l.complaints...)
		return nil
	})
	return complaints, err
}

func isGenerated(path string) bool { return strings.HasPrefix(filepath.Base(path), "zz_generated") }

type linter struct {
	path       string
	files      *token.FileSet
	complaints []string
}

func (l *linter) complain(at token.Pos, format string, args ...any) {
	p := l.files.Position(at)
	l.complaints = append(l.complaints, fmt.Sprintf("%s:%d: %s", l.path, p.Line, fmt.Sprintf(format, args...)))
}

func (l *linter) check(file *ast.File) {
	isTest := strings.HasSuffix(l.path, "_test.go")
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && !isTest {
			if n := l.files.Position(f.End()).Line - l.files.Position(f.Pos()).Line + 1; n > screen {
				l.complain(f.Pos(), "func %s has %d lines; at most %d fit on a screen: split it by meaning",
					f.Name.Name, n, screen)
			}
		}
	}
	if strings.HasPrefix(l.path, storiesPackage) {
		l.untold(file)
	}
	if !isTest && isProduct(l.path) {
		ast.Inspect(file, l.sleeps)
	}
	if !isTest && isProduct(l.path) && !strings.HasPrefix(l.path, eventsPackage) {
		ast.Inspect(file, l.makesEvents)
	}
	if !isTest && isProduct(l.path) && l.path != modesFile {
		ast.Inspect(file, l.comparesModes)
	}
	if !isTest && isProduct(l.path) {
		ast.Inspect(file, l.asksTopology)
		ast.Inspect(file, l.dropsFact)
	}
	l.imports(file)
}

func isProduct(path string) bool {
	return strings.HasPrefix(path, "internal/") || strings.HasPrefix(path, "cmd/") || strings.HasPrefix(path, "api/")
}

func (l *linter) sleeps(n ast.Node) bool {
	if call, ok := n.(*ast.CallExpr); ok {
		if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
			if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "time" {
				l.complain(call.Pos(), "product code does not sleep: wait for what is awaited, with a deadline")
			}
		}
	}
	return true
}

// storiesPackage is where a test is a story of the whole product.
const storiesPackage = "test/e2e/"

// untold complains of a story that does not say which capability it shows.
func (l *linter) untold(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") &&
			f.Name.Name != "TestMain" && f.Doc.Text() == "" {
			l.complain(f.Pos(), "%s does not say which capability it shows: put that into a comment above it",
				f.Name.Name)
		}
	}
}

// eventsPackage is the one that knows how long an event may be.
const eventsPackage = "internal/tell/"

func (l *linter) makesEvents(n ast.Node) bool {
	if call, ok := n.(*ast.CallExpr); ok && nameOf(call.Fun) == "Eventf" {
		l.complain(call.Pos(), "makes an event, and the API server refuses one that is long: call tell.Event (%s)",
			eventsPackage)
	}
	return true
}

// modesFile is the one place that knows what a durability mode means.
const modesFile = "internal/core/durability.go"

// comparesModes complains of a durability mode that is compared, or that is a case of a switch.
func (l *linter) comparesModes(n ast.Node) bool {
	var compared []ast.Expr
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			compared = []ast.Expr{n.X, n.Y}
		}
	case *ast.CaseClause:
		compared = n.List
	}
	for _, e := range compared {
		if name := nameOf(e); strings.HasPrefix(name, "Durability") && name != "Durability" {
			l.complain(e.Pos(), "compares a durability mode with %s: ask core.DurabilityMode what follows from it (%s)",
				name, modesFile)
		}
	}
	return true
}

// nameOf is the name of a variable or constant, without its package; "" for anything else.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// forbidden imports: what a directory's code must not know.
var forbidden = []struct{ dir, imports, why string }{
	{"internal/core/", "k8s.io/", "core decides on plain data"},
	{"internal/core/", "sigs.k8s.io/", "core decides on plain data"},
	{"internal/core/", "net/http", "core does no I/O"},
	{"internal/core/", "database/sql", "core knows no SQL"},
	{"internal/core/", "cnmsql.co/api", "core has its own small types"},
	{"internal/core/async/", "cnmsql.co/internal/core/group", "a topology knows nothing of the other; what both need " +
		"is in core or core/draft"},
	{"internal/core/group/", "cnmsql.co/internal/core/async", "a topology knows nothing of the other; what both need " +
		"is in core or core/draft"},
	{"internal/gtid/", "cnmsql.co/", "gtid knows nothing but GTIDs"},
	{"internal/pki/", "cnmsql.co/", "pki knows nothing but certificates, and whom they name"},
	{"internal/", "cnmsql.co/internal/operator", "nothing imports the operator"},
	{"internal/", "cnmsql.co/internal/instance", "nothing imports the instance manager"},
	{"api/", "cnmsql.co/internal", "the API knows nothing of how it is carried out"},
}

func (l *linter) imports(file *ast.File) {
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || strings.HasSuffix(l.path, "_test.go") {
			continue
		}
		for _, f := range forbidden {
			inside := strings.HasPrefix("cnmsql.co/"+l.path, f.imports+"/")
			if strings.HasPrefix(l.path, f.dir) &&
				(path == f.imports || strings.HasPrefix(path, strings.TrimSuffix(f.imports, "/")+"/")) && !inside {
				l.complain(spec.Pos(), "imports %s: %s", path, f.why)
			}
		}
	}
}
