package sim

import (
	"go/ast"
	"go/token"
	"testing"
)

// products are the packages of the product whose waits the simulation models.
var products = []string{"instance", "operator", "archive", "mysql"}

// TestNoDurationOfTheProductIsWrittenAgain holds that what the model and the product both wait for is a constant of
// the core, which both take: a model with a copy goes on to try what the product waited for before. It is found by
// its name. The bound of a statement or of a call is most often the product's, so that each has a name.
func TestNoDurationOfTheProductIsWrittenAgain(t *testing.T) {
	c := calls{files: token.NewFileSet()}
	owners := map[string]string{}
	for _, product := range products {
		for _, file := range c.parsed(t, product) {
			for _, name := range durations(file) {
				owners[name.Name] = product
			}
		}
	}
	bounds := 0
	for _, file := range c.parsed(t, "sim") {
		for _, name := range durations(file) {
			if owner := owners[name.Name]; owner != "" {
				t.Errorf("%s: %s is a constant of internal/%s, too: make it one of internal/core that both take",
					c.files.Position(name.Pos()), name.Name, owner)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			bound := boundOf(n)
			if bound == nil {
				return true
			}
			bounds++
			if isDuration(bound) {
				t.Errorf("%s: this bound has no name: take the product's, from internal/core, or name the world's",
					c.files.Position(bound.Pos()))
			}
			return true
		})
	}
	if len(owners) == 0 || bounds == 0 {
		t.Fatalf("found %d durations of the product and %d bounds of the model: this test finds nothing any more",
			len(owners), bounds)
	}
}

// durations are the names of a file's constants that are written as durations.
func durations(file *ast.File) (names []*ast.Ident) {
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			continue
		}
		for _, spec := range decl.Specs {
			spec := spec.(*ast.ValueSpec)
			for i, value := range spec.Values {
				if isDuration(value) {
					names = append(names, spec.Names[i])
				}
			}
		}
	}
	return names
}

// isDuration reports whether an expression is written as a number of a unit of package time.
func isDuration(e ast.Expr) (is bool) {
	units := map[string]bool{"Millisecond": true, "Second": true, "Minute": true, "Hour": true}
	ast.Inspect(e, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			pkg, _ := s.X.(*ast.Ident)
			is = is || pkg != nil && pkg.Name == "time" && units[s.Sel.Name]
		}
		return true
	})
	return is
}

// boundOf is the bound of a statement to the modelled mysqld, or of a call from a machine to another; nil for what is
// neither.
func boundOf(n ast.Node) ast.Expr {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	switch {
	case ok && s.Sel.Name == "statement":
		return call.Args[0]
	case ok && s.Sel.Name == "call":
		return call.Args[2]
	}
	return nil
}
