package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// baselineFile holds how often each package breaks each rule of ratchet. The tree broke these rules
// before they were rules. The counts may fall and never rise, so the rules hold for new code at once.
// Behind a count may stand why it is allowed; of a rule that needsReason, it must.
const baselineFile = "tools/lint/baseline.txt"

// The limits of the rules that have one.
const (
	maxFileLines = 450
	maxColumns   = 120
	tabColumns   = 4
	maxFields    = 20
)

// toldPlaces is how many places of a package that rose are printed. More say nothing new.
const toldPlaces = 20

// rules maps the name of each ratcheted rule to what its reader has to do.
var rules = map[string]string{
	"file-lines":      fmt.Sprintf("a file has at most %d lines: give each subject a file", maxFileLines),
	"line-columns":    fmt.Sprintf("a line has at most %d columns (a tab is %d): break it", maxColumns, tabColumns),
	"struct-fields":   fmt.Sprintf("a struct has at most %d fields: give each part of the state a struct", maxFields),
	"test-func-lines": fmt.Sprintf("a test's function has at most %d lines: take out helpers, or part it", screen),
	"shell-decides":   "a shell compares no epoch, promotion or GTID set: ask a function below internal/core",
	"question-acts":   "a function that asks changes no plan: take out what it does, or name it after that",
	"doc-form":        docFormAdvice,
	"test-doc-form":   docFormAdvice,
}

const docFormAdvice = "a doc comment begins with the name and a verb: x reports whether, returns or does something"

// finding is one place that breaks a rule of the ratchet.
type finding struct {
	rule, dir, place string
}

// count says how often a package breaks a rule.
type count map[[2]string]int

// findAll returns the findings in every Go file below root.
func findAll(root string) (found []finding, err error) {
	err = eachGoFile(root, func(name string, text []byte) error {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		f := &finder{path: name, files: files}
		f.lines(text)
		f.declarations(file)
		f.docForms(file)
		if !strings.HasSuffix(name, "_test.go") && isProduct(name) {
			if strings.HasPrefix(name, "internal/core/") {
				f.questions(file)
			}
			if isShell(name) {
				f.comparisons(file)
			}
		}
		found = append(found, f.found...)
		return nil
	})
	return found, err
}

func eachGoFile(root string, visit func(name string, text []byte) error) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || isGenerated(name) {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(name), text)
	})
}

type finder struct {
	path  string
	files *token.FileSet
	found []finding
}

func (f *finder) add(rule string, line int, format string, args ...any) {
	place := fmt.Sprintf("%s:%d: %s", f.path, line, fmt.Sprintf(format, args...))
	f.found = append(f.found, finding{rule: rule, dir: path.Dir(f.path), place: place})
}

func (f *finder) line(at token.Pos) int { return f.files.Position(at).Line }

// lines looks at the length of the file and the width of each of its lines.
func (f *finder) lines(text []byte) {
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i, line := range lines {
		if w := columns(line); w > maxColumns {
			f.add("line-columns", i+1, "%d columns", w)
		}
	}
	if n := len(lines); n > maxFileLines {
		f.add("file-lines", 1, "%d lines", n)
	}
}

func columns(line string) (n int) {
	for _, r := range line {
		if r == '\t' {
			n += tabColumns
		} else {
			n++
		}
	}
	return n
}

// declarations looks at the fields of structs and, in tests, at the length of functions: main.go
// refuses long functions elsewhere without exception.
func (f *finder) declarations(file *ast.File) {
	isTest := strings.HasSuffix(f.path, "_test.go")
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok && s.Fields.NumFields() > maxFields {
				f.add("struct-fields", f.line(n.Pos()), "struct %s has %d fields", n.Name.Name, s.Fields.NumFields())
			}
		case *ast.FuncDecl:
			if lines := f.line(n.End()) - f.line(n.Pos()) + 1; isTest && lines > screen {
				f.add("test-func-lines", f.line(n.Pos()), "func %s has %d lines", n.Name.Name, lines)
			}
		}
		return true
	})
}

// shells are the packages that carry out what core decides, or tell it: each asks core, and judges nothing itself.
var shells = []string{"internal/instance/", "internal/operator/", "internal/whatif/", "internal/plugin/",
	"internal/backups/"}

// isShell reports whether a file belongs to one of the shells.
func isShell(name string) bool {
	return slices.ContainsFunc(shells, func(dir string) bool { return strings.HasPrefix(name, dir) })
}

// comparisons finds what a shell compares that only core may judge. The linter knows no types, so it
// goes by the names of fields and by the two methods that compare GTID sets.
func (f *finder) comparisons(file *ast.File) {
	packages := map[string]bool{}
	for _, s := range file.Imports {
		name := path.Base(strings.Trim(s.Path.Value, `"`))
		if s.Name != nil {
			name = s.Name.Name
		}
		packages[name] = true
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			for _, e := range []ast.Expr{n.X, n.Y} {
				if isComparison(n.Op) && isJudged(e) {
					f.add("shell-decides", f.line(n.Pos()), "compares %s", nameOf(e))
					break
				}
			}
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			if ok && (s.Sel.Name == "Contains" || s.Sel.Name == "Equal") && !packages[nameOf(s.X)] && !isMoment(s.X) {
				f.add("shell-decides", f.line(n.Pos()), "calls %s", s.Sel.Name)
			}
		}
		return true
	})
}

func isComparison(op token.Token) bool {
	return slices.Contains([]token.Token{token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ}, op)
}

// isJudged reports whether an expression is named as what only core may judge: an epoch, what is withheld below one,
// a promise, or a promotion. A variable counts as a field does, and so does a function that returns it.
func isJudged(e ast.Expr) bool {
	name := strings.ToLower(nameOf(called(e)))
	return strings.HasSuffix(name, "epoch") || strings.HasSuffix(name, "withheld") ||
		slices.Contains([]string{"promotion", "nowritesbelow", "noreceivingbelow"}, name)
}

// called returns the function that an expression calls, or the expression.
func called(e ast.Expr) ast.Expr {
	if call, ok := e.(*ast.CallExpr); ok {
		return call.Fun
	}
	return e
}

// isMoment reports whether an expression is named as a time, which is compared by a method named as that of GTID sets.
func isMoment(e ast.Expr) bool {
	name := nameOf(called(e))
	return strings.HasSuffix(name, "At") || strings.HasSuffix(name, "Timestamp")
}

// checkRatchet complains of each package that breaks a rule more often than the baseline allows.
func checkRatchet(root string) (complaints []string, err error) {
	found, err := findAll(root)
	if err != nil {
		return nil, err
	}
	allowed, _, err := readBaseline()
	if err != nil {
		return nil, err
	}
	now := tally(found)
	for _, k := range now.keys() {
		if now[k] <= allowed[k] {
			continue
		}
		complaints = append(complaints, fmt.Sprintf("%s: %s: %d places, and %s allows %d: %s. Places:",
			k[1], k[0], now[k], baselineFile, allowed[k], rules[k[0]]))
		complaints = append(complaints, placesOf(found, k)...)
	}
	return complaints, nil
}

func placesOf(found []finding, k [2]string) (out []string) {
	for _, f := range found {
		if f.rule == k[0] && f.dir == k[1] {
			out = append(out, "  "+f.place)
		}
	}
	if more := len(out) - toldPlaces; more > 0 {
		out = append(out[:toldPlaces], fmt.Sprintf("  and %d more", more))
	}
	return out
}

func tally(found []finding) count {
	c := count{}
	for _, f := range found {
		c[[2]string{f.rule, f.dir}]++
	}
	return c
}

// keys are sorted by rule, then by package, so that the file changes only where a count does.
func (c count) keys() [][2]string {
	out := make([][2]string, 0, len(c))
	for k := range c {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return out
}

// needsReason is the rule that nothing breaks without a reason in the baseline: a shell that decides may do so beside
// what core decides, and differ from it.
const needsReason = "shell-decides"

// readBaseline returns the counts and the reasons of the file. It allows nothing when there is no file.
func readBaseline() (c count, reasons map[[2]string]string, err error) {
	c, reasons = count{}, map[[2]string]string{}
	text, err := os.ReadFile(baselineFile)
	if errors.Is(err, fs.ErrNotExist) {
		return c, reasons, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var k [2]string
		var n int
		if _, err := fmt.Sscanf(line, "%s %s %d", &k[0], &k[1], &n); err != nil || rules[k[0]] == "" {
			return nil, nil, fmt.Errorf("%s:%d: %q is no rule, package and count", baselineFile, i+1, line)
		}
		if parts := strings.SplitN(line, " ", 4); len(parts) == 4 {
			reasons[k] = parts[3]
		} else if k[0] == needsReason {
			return nil, nil, fmt.Errorf("%s:%d: say behind the count why these decide nothing", baselineFile, i+1)
		}
		c[k] = n
	}
	return c, reasons, nil
}

// writeBaseline writes what is found now, and returns what rose: a reviewer has to agree with that.
func writeBaseline(root string) (rose []string, err error) {
	found, err := findAll(root)
	if err != nil {
		return nil, err
	}
	before, reasons, err := readBaseline()
	if err != nil {
		return nil, err
	}
	out := []byte("# Written by go run ./tools/lint -baseline. A count may fall and never rises: see ratchet.go.\n")
	now := tally(found)
	for _, k := range now.keys() {
		if now[k] > before[k] {
			rose = append(rose, fmt.Sprintf("%s: %s rose from %d to %d", k[1], k[0], before[k], now[k]))
		}
		line := fmt.Sprintf("%s %s %d %s", k[0], k[1], now[k], reasons[k])
		out = append(out, strings.TrimSpace(line)+"\n"...)
	}
	return rose, os.WriteFile(baselineFile, out, 0o644)
}
