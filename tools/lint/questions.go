package main

import (
	"go/ast"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// questionWords are those with which the name of a question begins.
var questionWords = []string{"is", "was", "has", "had", "may", "can", "must", "needs", "awaits", "holds", "stays",
	"reads", "serves", "stops", "lacks", "lags", "starves", "streams", "receives", "reaches", "accepts",
	"goes", "knows", "keeps", "found", "loses"}

// planning are the methods by which a plan is changed, see internal/core/draft.
var planning = []string{"Do", "Doing", "Block", "Warn", "Announce", "Remark", "Tell", "RecheckAt", "again", "Forget"}

// questions finds functions that answer yes or no, are named so, and change the plan on the way. A
// reader of a condition does not expect that, and a table of conditions may ask them in any order.
func (f *finder) questions(file *ast.File) {
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil || !isQuestion(fn) {
			continue
		}
		acts := ""
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if what := changeOfPlan(n); what != "" && acts == "" {
				acts = what
			}
			return acts == ""
		})
		if acts != "" {
			f.add("question-acts", f.line(fn.Pos()), "%s %s", fn.Name.Name, acts)
		}
	}
}

// isQuestion reports whether a function's last result is a bool, and its name asks for it.
func isQuestion(fn *ast.FuncDecl) bool {
	results := fn.Type.Results
	if results == nil || nameOf(results.List[len(results.List)-1].Type) != "bool" {
		return false
	}
	return slices.ContainsFunc(questionWords, func(word string) bool {
		first, size := utf8.DecodeRuneInString(fn.Name.Name)
		rest, found := strings.CutPrefix(string(unicode.ToLower(first))+fn.Name.Name[size:], word)
		next, _ := utf8.DecodeRuneInString(rest)
		return found && unicode.IsUpper(next)
	})
}

// changeOfPlan tells how a node changes a plan; "" when it does not.
func changeOfPlan(n ast.Node) string {
	switch n := n.(type) {
	case *ast.CallExpr:
		if s, ok := n.Fun.(*ast.SelectorExpr); ok && isPlanning(s.Sel.Name) {
			return "calls " + s.Sel.Name
		}
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			if isOfPlan(left) {
				return "sets " + nameOf(left)
			}
		}
	}
	return ""
}

// isPlanning reports whether a method is one by which a plan is changed: one of those, or one that tells of
// something, as TellLags does.
func isPlanning(method string) bool {
	of, tells := strings.CutPrefix(method, "Tell")
	next, _ := utf8.DecodeRuneInString(of)
	return slices.Contains(planning, method) || tells && unicode.IsUpper(next)
}

// isOfPlan reports whether an expression is a field of the plan that is being made.
func isOfPlan(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	return slices.Contains([]string{"Status", "Plan", "Again"}, s.Sel.Name) || isOfPlan(s.X)
}
