// Package chart holds what the Helm chart makes against the code and the documents, without a Kubernetes.
package chart

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"cnmsql.co/internal/doctable"
)

var _ = flag.Bool("rewrite", false, "write the table of the operator's rights into docs/security.md")

const root = "../.."

// operatorRole is the operator's ClusterRole as the chart makes it.
func operatorRole(t *testing.T) rbacv1.ClusterRole {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "dist", "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if yaml.Unmarshal([]byte(part), &role) == nil && role.Kind == "ClusterRole" && role.Name == "cnmsql-operator" {
			return role
		}
	}
	t.Fatal("dist/install.yaml has no ClusterRole cnmsql-operator")
	return rbacv1.ClusterRole{}
}

// rights are the verbs for each resource of a group.
func rights(role rbacv1.ClusterRole) map[string][]string {
	all := map[string][]string{}
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name := strings.TrimPrefix(group+"/"+resource, "/")
				all[name] = append(all[name], rule.Verbs...)
			}
		}
	}
	return all
}

// updates are the calls of this project that replace an object, and which one each replaces; "" passes on what
// another asks for.
var updates = map[string]string{
	"internal/apiconn/prompt.go c.Client":               "",
	"internal/apiconn/prompt.go s.SubResourceClient":    "",
	"internal/testapi/api.go c.SubResource(sub)":        "",
	"internal/operator/reconciler.go r.Client.Status()": "mysql.cnmsql.co/clusters/status",
	"internal/backups/scheduled.go r.Client.Status()":   "mysql.cnmsql.co/scheduledbackups/status",
	"internal/operator/lease.go a.client":               "coordination.k8s.io/leases",
	"internal/operator/lead/leader.go l.Interface":      "coordination.k8s.io/leases",
	// An instance does so, by a Role that the operator gives it: nobody gives what he may not do himself.
	"internal/instance/kubernetes.go a.leases": "coordination.k8s.io/leases",
}

// askedFor are resources that nobody replaces: a policy of the chart, or an admission controller that guards
// ownerReferences, asks whether the operator might.
var askedFor = []string{"mysql.cnmsql.co/clusters/promotion", "mysql.cnmsql.co/backups/status",
	"mysql.cnmsql.co/clusters/finalizers", "mysql.cnmsql.co/backups/finalizers",
	"mysql.cnmsql.co/scheduledbackups/finalizers", "batch/jobs/finalizers"}

// replacing are the names of functions that replace an object of Kubernetes.
var replacing = []string{"Update", "UpdateStatus", "UpdateScale", "CreateOrUpdate"}

// TestTheOperatorMayUpdateWhatItUpdatesAndNoMore holds the chart's rules to the calls in the code.
func TestTheOperatorMayUpdateWhatItUpdatesAndNoMore(t *testing.T) {
	found := callsThatReplace(t)
	for call := range found {
		if _, known := updates[call]; !known {
			t.Errorf("%s replaces an object: patch or apply it, or say in updates of which resource it is", call)
		}
	}
	needed := map[string]bool{}
	for call, resource := range updates {
		if !found[call] {
			t.Errorf("%s does not replace an object any more: take it out of updates", call)
		}
		if resource != "" {
			needed[resource] = true
		}
	}
	for _, resource := range askedFor {
		needed[resource] = true
	}
	for resource, verbs := range rights(operatorRole(t)) {
		if slices.Contains(verbs, "update") != needed[resource] {
			t.Errorf("%s: that the operator may update it is %t, that it has to be %t", resource, !needed[resource],
				needed[resource])
		}
		delete(needed, resource)
	}
	for resource := range needed {
		t.Errorf("%s: the operator may do nothing with it, and has to update it", resource)
	}
}

// callsThatReplace are all calls below internal that hand a context to one of replacing: file and receiver.
func callsThatReplace(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		ast.Inspect(file, func(n ast.Node) bool {
			if by := replaces(n); by != "" {
				found[filepath.ToSlash(name)+" "+by] = true
			}
			return true
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// replaces is what replaces an object in this node; "" if nothing does.
func replaces(n ast.Node) string {
	call, is := n.(*ast.CallExpr)
	if !is || len(call.Args) < 2 {
		return ""
	}
	by, is := call.Fun.(*ast.SelectorExpr)
	if !is || !slices.Contains(replacing, by.Sel.Name) {
		return ""
	}
	if first, is := call.Args[0].(*ast.Ident); !is || !strings.HasSuffix(strings.ToLower(first.Name), "ctx") {
		return ""
	}
	return types.ExprString(by.X)
}

// order is how people are used to read verbs.
var order = []string{"get", "list", "watch", "create", "patch", "update", "delete"}

// TestTheDocumentTellsTheOperatorsRights holds that docs/security.md has each of them.
func TestTheDocumentTellsTheOperatorsRights(t *testing.T) {
	all := rights(operatorRole(t))
	byVerbs := map[string][]string{}
	for _, resource := range slices.Sorted(maps.Keys(all)) {
		slices.SortFunc(all[resource], func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
		verbs := doctable.Code(all[resource]...)
		byVerbs[verbs] = append(byVerbs[verbs], resource)
	}
	table := doctable.Table{Name: "rights of the operator", Head: []string{"may", "of"}}
	for _, verbs := range slices.Sorted(maps.Keys(byVerbs)) {
		table.Rows = append(table.Rows, []string{verbs, doctable.Code(byVerbs[verbs]...)})
	}
	doctable.Check(t, filepath.Join(root, "docs", "security.md"), table)
}
