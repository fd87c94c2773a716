package crd

import (
	"context"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

// instanceRules are those of an instance, and to update Leases that are not its cluster's.
var instanceRules = []rbacv1.PolicyRule{
	{APIGroups: []string{"mysql.cnmsql.co"}, Resources: []string{"clusters/status"}, Verbs: []string{"patch"}},
	{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "update"}}}

// editRules are what the chart gives the role edit.
var editRules = []rbacv1.PolicyRule{{APIGroups: []string{"mysql.cnmsql.co"}, Resources: []string{"clusters",
	"clusters/status", "clusters/scale"}, Verbs: []string{"patch", "update"}}}

// bound is a client of a ServiceAccount of the namespace default that has rules, and ClusterRoles
// of Kubernetes besides.
func bound(t *testing.T, name string, rules []rbacv1.PolicyRule, roles ...string) client.Client {
	t.Helper()
	c, ctx := api(t), context.Background()
	meta := metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: metav1.NamespaceDefault}}
	objs := []client.Object{&rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: subjects}}
	for _, role := range roles {
		b := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
		b.Name = name + "-more"
		objs = append(objs, b)
	}
	for _, obj := range objs {
		if err := c.Create(ctx, obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(ctx, obj) })
	}
	as, err := saClient(name)
	if err != nil {
		t.Fatal(err)
	}
	return as
}

// renews updates a Lease as somebody.
func renews(t *testing.T, as client.Client, l *coordinationv1.Lease) error {
	t.Helper()
	now := metav1.NowMicro()
	l.Spec.RenewTime = &now
	return as.Update(context.Background(), l, client.DryRunAll)
}

// TestAnInstanceWritesNoOtherLease: also one whose Role was made wider than that of an instance.
func TestAnInstanceWritesNoOtherLease(t *testing.T) {
	c, ctx, as := api(t), context.Background(), bound(t, "db-2", instanceRules)
	const no = "db-2 may keep no Lease but db-primary"
	for name, refused := range map[string]string{"shop-primary": no, "db-1-primary": no, "x": no, "db-primary": ""} {
		l := lease(name, "", "")
		l.Labels = map[string]string{v1alpha1.LabelCluster: "db"}
		if err := c.Create(ctx, l); err != nil {
			t.Fatal(err)
		}
		me := "db-2"
		l.Spec.HolderIdentity = &me
		judge(t, renews(t, as, l), refused)
		_ = c.Delete(ctx, l)
	}
}

// TestAnotherApplicationsLeaderElectionGoesOn: the ServiceAccounts of others have names that end in
// numbers, too, and who has the role edit may patch the status of Clusters, though there is none.
func TestAnotherApplicationsLeaderElectionGoesOn(t *testing.T) {
	elects := []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
		Verbs: []string{"get", "create", "update"}}}
	for name, as := range map[string]client.Client{
		"runner-1":   bound(t, "runner-1", editRules, "system:aggregate-to-edit"),
		"workflow-2": bound(t, "workflow-2", nil, "cluster-admin"),
		"elects-3":   bound(t, "elects-3", elects),
		"both-4":     bound(t, "both-4", append(elects, editRules...)),
	} {
		for _, of := range []string{"leader", name[:len(name)-2] + "-primary"} {
			t.Run(name+" "+of, func(t *testing.T) {
				holder := name + "-abcde"
				l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: of, Namespace: metav1.NamespaceDefault},
					Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
				judge(t, as.Create(context.Background(), l), "")
				judge(t, renews(t, as, l), "")
				_ = api(t).Delete(context.Background(), l)
			})
		}
	}
}

// TestAnInstanceThatMayMakeLeasesIsHeldToItsOwn: where all ServiceAccounts of a namespace have the
// role edit.
func TestAnInstanceThatMayMakeLeasesIsHeldToItsOwn(t *testing.T) {
	c, as := api(t), bound(t, "db-2", instanceRules, "system:aggregate-to-edit")
	l := lease("db-primary", "db-2", "3")
	if err := c.Create(context.Background(), l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.Background(), l) })
	judge(t, renews(t, as, l.DeepCopy()), "")
	other, none := l.DeepCopy(), l.DeepCopy()
	holder := "db-1"
	other.Spec.HolderIdentity, none.Labels = &holder, nil
	judge(t, renews(t, as, other), "may name nobody but itself")
	judge(t, renews(t, as, none), "has the label mysql.cnmsql.co/cluster=db")
}

// TestAnEditorDoesNotWriteTheRecordOfAPrimary: with an epoch that nobody reaches, nobody could be
// promoted. What has the label and is none, is the editor's.
func TestAnEditorDoesNotWriteTheRecordOfAPrimary(t *testing.T) {
	c, ctx, ed := api(t), context.Background(), bound(t, "ed", editRules, "system:aggregate-to-edit")
	const refused = "the Lease edl-primary is written by the instances of Cluster edl and by the operator only"
	l := lease("edl-primary", "edl-1", "5")
	judge(t, ed.Create(ctx, l.DeepCopy()), refused)
	if err := c.Create(ctx, l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(ctx, l) })
	forEver := merge(`{"metadata":{"annotations":{"mysql.cnmsql.co/epoch":"999999999999999999"}},` +
		`"spec":{"holderIdentity":"edl-9"}}`)
	all := client.InNamespace(metav1.NamespaceDefault)
	named := client.MatchingFields{"metadata.name": l.Name}
	for _, err := range []error{
		ed.Patch(ctx, l.DeepCopy(), forEver),
		renews(t, ed, l.DeepCopy()),
		ed.Patch(ctx, l.DeepCopy(), merge(`{"metadata":{"labels":null}}`)),
		ed.Patch(ctx, l.DeepCopy(), merge(`{"metadata":{"labels":{"mysql.cnmsql.co/cluster":"other"}}}`)),
		ed.Delete(ctx, l.DeepCopy()),
		ed.DeleteAllOf(ctx, &coordinationv1.Lease{}, all, named),
	} {
		judge(t, err, refused)
	}
	theirs := lease("edl-cache", "", "")
	theirs.Labels[v1alpha1.LabelCluster] = "edl"
	judge(t, ed.Create(ctx, theirs), "")
	judge(t, ed.Patch(ctx, theirs.DeepCopy(), merge(`{"spec":{"holderIdentity":"a"}}`)), "")
	judge(t, ed.Delete(ctx, theirs), "")
}

// TestWhoWritesTheRecordOfAPrimary: those who decide who is writable, and those who take away what
// nobody needs.
func TestWhoWritesTheRecordOfAPrimary(t *testing.T) {
	c, ctx := api(t), context.Background()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "records"}}
	judge(t, c.Create(ctx, ns), "")
	made := lease("db-primary", "db-1", "5")
	made.Namespace = ns.Name
	judge(t, c.Create(ctx, made), "")
	as := func(who string) client.Client {
		conf := rest.CopyConfig(server)
		conf.Impersonate = rest.ImpersonationConfig{UserName: who, Groups: []string{"system:serviceaccounts",
			"system:serviceaccounts:kube-system", "system:authenticated"}}
		out, err := client.New(conf, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	rules := append([]rbacv1.PolicyRule{{APIGroups: []string{"mysql.cnmsql.co"}, Resources: []string{
		"clusters/promotion"}, Verbs: []string{"update"}}}, instanceRules...)
	mine := lease("who-primary", "", "")
	judge(t, c.Create(ctx, mine), "")
	t.Cleanup(func() { _ = c.Delete(ctx, mine) })
	judge(t, renews(t, bound(t, "the-operator", rules), mine.DeepCopy()), "")
	collector := as("system:serviceaccount:kube-system:generic-garbage-collector")
	judge(t, collector.Delete(ctx, made, client.DryRunAll), "")
	controller := as("system:serviceaccount:kube-system:namespace-controller")
	judge(t, controller.Delete(ctx, made, client.DryRunAll), "and by the operator only")
	judge(t, c.Delete(ctx, ns), "")
	await(t, "the API server sees that the namespace goes", func() bool {
		return controller.Delete(ctx, made, client.DryRunAll) == nil
	})
}
