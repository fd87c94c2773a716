package main

import "go/ast"

// dropsFact complains of x, _ := f.Get(), which is how an unknown core.Fact becomes a known zero value.
// The linter knows no types: a method Get without arguments and with two results is taken for a fact's.
func (l *linter) dropsFact(n ast.Node) bool {
	a, ok := n.(*ast.AssignStmt)
	if !ok || len(a.Lhs) != 2 || len(a.Rhs) != 1 || nameOf(a.Lhs[1]) != "_" {
		return true
	}
	if call, ok := a.Rhs[0].(*ast.CallExpr); ok && len(call.Args) == 0 {
		if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Get" {
			l.complain(a.Pos(), "takes an unknown fact for the zero value: look at the second result, or ask Is "+
				"or IsNot")
		}
	}
	return true
}
