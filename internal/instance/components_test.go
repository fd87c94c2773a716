package instance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// mostAsked is how many questions a component may ask its manager: one that asks more is no component,
// but the manager in two places.
const mostAsked = 7

// mostMethods is how many methods the manager may have. What it gets beyond them belongs into a component.
const mostMethods = 113

// TestAComponentAsksFewQuestions holds each component's interface, which is the type of its field by,
// and the manager itself against their limits.
func TestAComponentAsksFewQuestions(t *testing.T) {
	asked, asks, methods := map[string]int{}, map[string]string{}, 0
	files, err := filepath.Glob("*.go")
	must(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		must(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if receiverOf(n) == "manager" {
					methods++
				}
			case *ast.TypeSpec:
				switch of := n.Type.(type) {
				case *ast.InterfaceType:
					asked[n.Name.Name] = of.Methods.NumFields()
				case *ast.StructType:
					if by := askedBy(of); by != "" {
						asks[n.Name.Name] = by
					}
				}
			}
			return true
		})
	}
	for component, by := range asks {
		if n := asked[by]; n == 0 || n > mostAsked {
			t.Errorf("%s asks its manager %d questions (%s), and may ask between 1 and %d", component, n, by, mostAsked)
		}
	}
	if len(asks) < 20 || methods > mostMethods {
		t.Errorf("there are %d components, and the manager has %d methods; it may have %d", len(asks), methods,
			mostMethods)
	}
}

func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if star, is := of.(*ast.StarExpr); is {
		of = star.X
	}
	name, _ := of.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

// askedBy is the type of a struct's field by; "" where it has none.
func askedBy(of *ast.StructType) string {
	for _, field := range of.Fields.List {
		for _, name := range field.Names {
			if is, ok := field.Type.(*ast.Ident); ok && name.Name == "by" {
				return is.Name
			}
		}
	}
	return ""
}
