package main

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// topologyFile is the one place that knows what a topology implies, and modeReader the package
// that reads one out of a spec.
const (
	topologyFile = "internal/core/topology.go"
	modeReader   = "internal/declared/"
)

// asksTopology complains of code that asks which topology it is in, instead of what follows from
// that: a topology that is compared or is a case, spec.replication.mode that is read, and the
// settings or the view of a group that are held against nil.
func (l *linter) asksTopology(n ast.Node) bool {
	if l.path == topologyFile || strings.HasPrefix(l.path, modeReader) {
		return false
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			l.comparesTopology(n.X, n.Y)
			l.comparesTopology(n.Y, n.X)
		}
	case *ast.CaseClause:
		for _, e := range n.List {
			l.comparesTopology(e, nil)
		}
	case *ast.SelectorExpr:
		if n.Sel.Name == "Mode" && nameOf(n.X) == "Replication" {
			l.complain(n.Pos(), "reads spec.replication.mode: ask declared.Topology (%s)", modeReader)
		}
	}
	return true
}

func (l *linter) comparesTopology(e, with ast.Expr) {
	name := nameOf(e)
	_, isField := e.(*ast.SelectorExpr)
	switch {
	case isTopology(name):
		l.complain(e.Pos(), "compares a topology with %s: ask core.Topology what follows from it (%s)", name,
			topologyFile)
	case isField && name == "Group" && nameOf(with) == "nil":
		l.complain(e.Pos(), "takes a group that is there for the topology: ask core.Topology what follows from it, or "+
			"HasView of a server (%s)", topologyFile)
	}
}

// isTopology reports whether a name is that of a topology, or of a mode of the API.
func isTopology(name string) bool {
	kubernetes := []string{"TopologyKey", "TopologySpreadConstraints"}
	return strings.HasPrefix(name, "Topology") && !slices.Contains(kubernetes, name) ||
		name == "ReplicationGroup" || name == "ReplicationAsync"
}
