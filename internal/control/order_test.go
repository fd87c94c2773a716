package control

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// declared are the declarations of a package.
func declared(t *testing.T, dir string) (all []ast.Decl) {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f.Decls...)
	}
	return all
}

// having are the types that have a method of that name.
func having(decls []ast.Decl, method string) (types []string) {
	for _, d := range decls {
		if f, is := d.(*ast.FuncDecl); is && f.Name.Name == method && f.Recv != nil {
			if of, is := f.Recv.List[0].Type.(*ast.Ident); is {
				types = append(types, of.Name)
			}
		}
	}
	return types
}

// withFields are the structs that have all these fields.
func withFields(decls []ast.Decl, names ...string) (types []string) {
	for _, d := range decls {
		ast.Inspect(d, func(n ast.Node) bool {
			spec, is := n.(*ast.TypeSpec)
			if !is {
				return true
			}
			if of, is := spec.Type.(*ast.StructType); is {
				has := 0
				for _, f := range of.Fields.List {
					for _, name := range f.Names {
						if slices.Contains(names, name.Name) {
							has++
						}
					}
				}
				if has == len(names) {
					types = append(types, spec.Name.Name)
				}
			}
			return false
		})
	}
	return types
}

// nameOf is the name of a value's type, without its package.
func nameOf(v any) string {
	name := fmt.Sprintf("%T", v)
	return name[strings.LastIndex(name, ".")+1:]
}

func TestEveryOrderHasARow(t *testing.T) {
	var rows []string
	var verbs []Verb
	for _, o := range Orders() {
		if slices.Contains(verbs, o.Verb()) {
			t.Errorf("two orders are called %s", o.Verb())
		}
		rows, verbs = append(rows, nameOf(o)), append(verbs, o.Verb())
	}
	types := having(declared(t, "."), "Verb")
	for _, order := range types {
		if order != nameOf(Unknown{}) && !slices.Contains(rows, order) {
			t.Errorf("%s is an order, and a manager cannot read it: it has no row in Orders", order)
		}
	}
	if len(types) != len(rows)+1 {
		t.Errorf("there are %d orders besides Unknown, and %d rows", len(types)-1, len(rows))
	}
}

// An effect on an instance in an epoch is an order to it.
func TestEveryEffectThatIsAnOrderHasARow(t *testing.T) {
	core := declared(t, "../core")
	effects := having(core, "effect")
	var orders, rows, told []string
	for _, c := range onTheWire {
		told = append(told, nameOf(c.effect))
		_, o := OrderOf(c.effect, func(string) string { return "" })
		orders = append(orders, nameOf(o))
	}
	for _, e := range withFields(core, "Instance", "Epoch") {
		if slices.Contains(effects, e) && !slices.Contains(told, e) {
			t.Errorf("the effect %s is an order, and nothing says which: it is not in onTheWire", e)
		}
	}
	for _, o := range Orders() {
		rows = append(rows, nameOf(o))
		if !slices.Contains(orders, nameOf(o)) {
			t.Errorf("no effect is the order %s: it is not in onTheWire", o.Verb())
		}
	}
	for _, o := range orders {
		if !slices.Contains(rows, o) {
			t.Errorf("an effect is the order %s, which has no row", o)
		}
	}
}
