package core

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

func TestEveryNoticeSaysWhoEndsIt(t *testing.T) {
	values, seen := map[string]string{}, 0
	sources(t, ".", func(_ string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, is := n.(*ast.ValueSpec); is && len(spec.Names) == 1 && len(spec.Values) == 1 {
				if text, is := spec.Values[0].(*ast.BasicLit); is && text.Kind == token.STRING {
					values[spec.Names[0].Name], _ = strconv.Unquote(text.Value)
				}
			}
			return true
		})
	})
	sources(t, ".", func(path string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			if constant := reasonOf(call); constant != "" {
				seen++
				if notices[Reason(values[constant])] == "" {
					t.Errorf("%s makes a notice of %s, and internal/core/notices.go does not say who ends it", path,
						constant)
				}
			}
			return true
		})
	})
	if seen < 20 {
		t.Errorf("only %d notices are found in the sources", seen)
	}
	for reason := range notices {
		if !slices.ContainsFunc(Catalogue(), func(e Entry) bool { return e.Name == string(reason) }) {
			t.Errorf("%s is not in the catalogue", reason)
		}
	}
}

// reasonOf is the constant of which a call makes a notice, where it is written out; "" of any other call.
func reasonOf(call *ast.CallExpr) string {
	of, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return ""
	}
	var found ast.Expr
	switch of.Sel.Name {
	case "Remark":
		found = call.Args[0]
	case "Announce":
		found = call.Args[1]
	case "note", "tellGivenUp":
		if notice, is := call.Args[0].(*ast.CompositeLit); is {
			for _, e := range notice.Elts {
				if field, is := e.(*ast.KeyValueExpr); is && field.Key.(*ast.Ident).Name == "Reason" {
					found = field.Value
				}
			}
		}
	}
	if constant, is := found.(*ast.SelectorExpr); is {
		if pkg, is := constant.X.(*ast.Ident); is && pkg.Name == "core" {
			return constant.Sel.Name
		}
	}
	return ""
}
