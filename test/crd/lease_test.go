package crd

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

func TestAnInstanceKeepsNoLeaseButItsClusters(t *testing.T) {
	db := leaseOf("db")
	unlabelled := db("db-2", "3")
	unlabelled.Labels = nil
	ofAnother := db("db-2", "3")
	ofAnother.Labels[v1alpha1.LabelCluster] = "shop"
	for name, r := range map[string]struct {
		before  *coordinationv1.Lease
		as      string
		after   *coordinationv1.Lease
		refused string
	}{
		"it takes one as the operator makes it": {db("", ""), "db-2", db("db-2", "3"), ""},
		"it takes it for another instance":      {db("", ""), "db-2", db("db-1", "3"), "may name nobody but itself"},
		"it gives it another's label": {db("db-2", "3"), "db-2", ofAnother,
			"has the label mysql.cnmsql.co/cluster=db"},
		"somebody's own leader election": {lease("web", "", ""), "web-server",
			lease("web", "web-server-xyz", ""), ""},
		"it renews":                     {db("db-2", "3"), "db-2", db("db-2", "3"), ""},
		"it takes one that is free":     {db("", "3"), "db-2", db("db-2", "3"), ""},
		"it takes it for a later epoch": {db("db-1", "3"), "db-2", db("db-2", "5"), ""},
		"it takes it in the same epoch": {db("db-1", "3"), "db-2", db("db-2", "3"),
			"may take the Lease from db-1 for a later epoch only"},
		"it sets the epoch back": {db("", "3"), "db-2", db("db-2", "2"),
			"may not set the epoch of a Lease back"},
		"it takes the epoch off": {db("", "3"), "db-2", db("db-2", ""),
			"may not set the epoch of a Lease back"},
		"its epoch is no number": {db("", "3"), "db-2", db("db-2", "99999999999999999999"),
			"may not set the epoch of a Lease back"},
		"it releases its own":                    {db("db-2", "3"), "db-2", db("", ""), ""},
		"it releases another's":                  {db("db-1", "3"), "db-2", db("", ""), "take nobody else off it"},
		"it releases one that was taken away":    {db("", "4"), "db-2", db("", ""), "take nobody else off it"},
		"it says that it was taken from another": {db("db-1", "3"), "db-2", db("", "9"), "take nobody else off it"},
		"the operator takes it away":             {db("db-1", "3"), "cnmsql-operator", db("", "4"), ""},
		"it takes the label off": {db("db-2", "3"), "db-2", unlabelled,
			"has the label mysql.cnmsql.co/cluster=db"},
	} {
		t.Run(name, func(t *testing.T) { tryLease(t, r.before, r.as, r.after, r.refused) })
	}
}

// A higher epoch would keep every later primary from taking the Lease.
func TestAnInstanceTakesTheLeaseForTheEpochOfItsPromotionOnly(t *testing.T) {
	c, ctx := api(t), context.Background()
	for _, name := range []string{"paid", "else"} {
		u := cluster(t, name, "{}")
		if err := c.Create(ctx, u); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(ctx, u) })
		promote(t, c, u, name+"-2", 5)
	}
	awaitClustersInPolicy(t)
	paid := leaseOf("paid")
	for name, r := range map[string]struct {
		before  *coordinationv1.Lease
		as      string
		after   *coordinationv1.Lease
		refused string
	}{
		"it takes what it was promoted for":    {paid("paid-1", "3"), "paid-2", paid("paid-2", "5"), ""},
		"one that was taken away":              {paid("", "5"), "paid-2", paid("paid-2", "5"), ""},
		"it takes it as the operator makes it": {paid("", ""), "paid-2", paid("paid-2", "5"), ""},
		"another takes it for ever": {paid("", ""), "paid-1", paid("paid-1", "999999999999999999"),
			"for the epoch of its own promotion only"},
		"for a later epoch": {paid("paid-1", "3"), "paid-2", paid("paid-2", "6"),
			"epoch 5 is of paid-2"},
		"for an epoch that blocks for ever": {paid("paid-2", "5"), "paid-2", paid("paid-2", "999999999999999999"),
			"for the epoch of its own promotion only"},
		"one that is not promoted takes it": {paid("paid-2", "4"), "paid-1", paid("paid-1", "5"),
			"for the epoch of its own promotion only"},
		"the former primary renews its own": {paid("paid-1", "3"), "paid-1", paid("paid-1", "3"), ""},
		"the former primary releases it":    {paid("paid-1", "3"), "paid-1", paid("", ""), ""},
		"it releases it with a later epoch": {paid("paid-1", "3"), "paid-1", paid("", "9"),
			"for the epoch of its own promotion only"},
		"the operator takes it for a later one": {paid("paid-2", "5"), "cnmsql-operator", paid("", "6"), ""},
	} {
		t.Run(name, func(t *testing.T) { tryLease(t, r.before, r.as, r.after, r.refused) })
	}
}

// awaitClustersInPolicy returns when the API server's cache has the Cluster paid: one that it
// does not have is not held to anything.
func awaitClustersInPolicy(t *testing.T) {
	t.Helper()
	as, err := instanceClient("paid-1")
	if err != nil {
		t.Fatal(err)
	}
	l := lease("paid-primary", "", "")
	if err := api(t).Create(context.Background(), l); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = api(t).Delete(context.Background(), l) }()
	taken := lease("paid-primary", "paid-1", "9")
	taken.ResourceVersion = l.ResourceVersion
	for range 300 {
		err = as.Update(context.Background(), taken.DeepCopy(), client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "epoch 5 is of paid-2") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("the policy does not know the promotion of paid-2: %v", err)
}

// The policy reads the Clusters from a cache, which may be behind the status that an
// instance acts on: a refusal would add the manager's first pause to a failover.
func TestAPromotedInstanceIsLetInByTheLeasePolicyAtOnce(t *testing.T) {
	c, ctx := api(t), context.Background()
	u := cluster(t, "quick", "{}")
	if err := c.Create(ctx, u); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(ctx, u) })
	l := lease("quick-primary", "", "0")
	if err := c.Create(ctx, l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(ctx, l) })
	late := 0
	const rounds = 100
	for epoch := range int64(rounds) {
		me := fmt.Sprintf("quick-%d", 1+epoch%3)
		as, err := instanceClient(me)
		if err != nil {
			t.Fatal(err)
		}
		promote(t, c, u, me, epoch+1)
		seen := l.DeepCopy() // read, as a manager does before it takes the record
		if err := as.Get(ctx, client.ObjectKeyFromObject(l), seen); err != nil {
			t.Fatal(err)
		}
		l = lease("quick-primary", me, fmt.Sprint(epoch+1))
		l.ResourceVersion = seen.ResourceVersion
		if err = as.Update(ctx, l); err == nil {
			continue
		}
		late++
		again, cancel := context.WithTimeout(ctx, letInWithin)
		err = wait.PollUntilContextCancel(again, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			err = as.Update(ctx, l)
			return err == nil, nil
		})
		if cancel(); err != nil {
			t.Fatalf("%s is not let in within %s of its promotion: %v", me, letInWithin, err)
		}
	}
	t.Logf("%d of %d promotions were refused at first", late, rounds)
}

// letInWithin is how far the API server's cache of Clusters may be behind on a busy machine.
const letInWithin = 10 * time.Second

// tryLease writes a record as somebody, in the place of the one before, and judges how it is
// refused.
func tryLease(t *testing.T, before *coordinationv1.Lease, who string, after *coordinationv1.Lease, refused string) {
	t.Helper()
	c, ctx := api(t), context.Background()
	as, err := instanceClient(who)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, before); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(ctx, before) })
	after.ResourceVersion = before.ResourceVersion
	judge(t, as.Update(ctx, after, client.DryRunAll), refused)
}

// leaseOf makes records of one cluster.
func leaseOf(cluster string) func(holder, epoch string) *coordinationv1.Lease {
	return func(holder, epoch string) *coordinationv1.Lease { return lease(cluster+"-primary", holder, epoch) }
}

// lease is a record as managers and the operator make it.
func lease(name, holder, epoch string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault,
		Labels: map[string]string{v1alpha1.LabelCluster: strings.TrimSuffix(name, "-primary")}}}
	if holder != "" {
		l.Spec.HolderIdentity = &holder
	}
	if epoch != "" {
		l.Annotations = map[string]string{v1alpha1.AnnotationEpoch: epoch}
	}
	return l
}

// promote writes a promotion into a Cluster's status.
func promote(t *testing.T, c client.Client, u *unstructured.Unstructured, instance string, epoch int64) {
	t.Helper()
	patch :=
		fmt.Sprintf(
			`{"status":{"primaryEpoch":%[2]d,"targetPrimary":%[1]q,"promotion":{"instance":%[1]q,"epoch":%[2]d,"proof":"Bootstrap"}}}`, instance, epoch)
	if err := c.Status().Patch(context.Background(), u, merge(patch)); err != nil {
		t.Fatal(err)
	}
}
