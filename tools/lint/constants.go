package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// constants are those of this module's packages, as far as their values are written with numbers, units of package
// time and one another.
type constants struct {
	root     string
	packages map[string]map[string]definition
}

// definition is where a constant's value is written, and by which imports the names in it are known.
type definition struct {
	value   ast.Expr
	dir     string
	imports map[string]string
}

// units are those of package time, in nanoseconds.
var units = map[string]int64{"Nanosecond": 1, "Microsecond": 1e3, "Millisecond": 1e6, "Second": 1e9, "Minute": 60e9,
	"Hour": 3600e9}

// value returns what a constant of a package below internal is: of core/agent.StuckLimit the nanoseconds.
func (c *constants) value(name string) (constant.Value, error) {
	at := strings.LastIndexByte(name, '.')
	return c.of("internal/"+name[:at], name[at+1:])
}

func (c *constants) of(dir, name string) (constant.Value, error) {
	if c.packages[dir] == nil {
		if err := c.read(dir); err != nil {
			return nil, err
		}
	}
	def, found := c.packages[dir][name]
	if !found {
		return nil, fmt.Errorf("there is no constant %s in %s", name, dir)
	}
	return c.evaluate(def.value, def)
}

// read takes up the constants of a package.
func (c *constants) read(dir string) error {
	all := map[string]definition{}
	c.packages[dir] = all
	files, err := filepath.Glob(filepath.Join(c.root, dir, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		imports := map[string]string{}
		for _, spec := range parsed.Imports {
			from, _ := strconv.Unquote(spec.Path.Value)
			name := path.Base(from)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			imports[name] = from
		}
		for _, d := range parsed.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, value := range spec.Values {
					all[spec.Names[i].Name] = definition{value, dir, imports}
				}
			}
		}
	}
	return nil
}

func (c *constants) evaluate(e ast.Expr, in definition) (constant.Value, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0), nil
	case *ast.ParenExpr:
		return c.evaluate(e.X, in)
	case *ast.Ident:
		return c.of(in.dir, e.Name)
	case *ast.SelectorExpr:
		from := in.imports[nameOf(e.X)]
		if unit, known := units[e.Sel.Name]; known && from == "time" {
			return constant.MakeInt64(unit), nil
		}
		if dir, ours := strings.CutPrefix(from, "cnmsql.co/"); ours {
			return c.of(dir, e.Sel.Name)
		}
	case *ast.BinaryExpr:
		return c.operate(e, in)
	}
	return nil, fmt.Errorf("%s has a constant that is not written with numbers, units of time and other constants",
		in.dir)
}

func (c *constants) operate(e *ast.BinaryExpr, in definition) (constant.Value, error) {
	x, err := c.evaluate(e.X, in)
	if err != nil {
		return nil, err
	}
	y, err := c.evaluate(e.Y, in)
	if err != nil {
		return nil, err
	}
	switch e.Op {
	case token.SHL:
		by, _ := constant.Uint64Val(y)
		return constant.Shift(x, e.Op, uint(by)), nil
	case token.QUO:
		return constant.BinaryOp(x, token.QUO_ASSIGN, y), nil // of whole numbers
	}
	return constant.BinaryOp(x, e.Op, y), nil
}
