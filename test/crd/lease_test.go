package crd

import (
	"context"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

func TestAnInstanceKeepsNoLeaseButItsClusters(t *testing.T) {
	c := api(t)
	lease := func(name, holder, epoch string) *coordinationv1.Lease {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		if holder != "" {
			l.Spec.HolderIdentity = &holder
		}
		if epoch != "" {
			l.Annotations = map[string]string{v1alpha1.AnnotationEpoch: epoch}
		}
		return l
	}
	for name, r := range map[string]struct {
		before  *coordinationv1.Lease
		as      string
		after   *coordinationv1.Lease
		refused string
	}{
		"it makes its own":                       {nil, "db-2", lease("db-primary", "db-2", "3"), ""},
		"it makes one for another instance":      {nil, "db-2", lease("db-primary", "db-1", "3"), "may name nobody but itself"},
		"it makes that of another cluster":       {nil, "db-2", lease("shop-primary", "db-2", "3"), "db-2 may keep no Lease but db-primary"},
		"of one whose name begins the same":      {nil, "db-2", lease("db-1-primary", "db-2", "3"), "db-2 may keep no Lease but db-primary"},
		"it makes one that is nobody's":          {nil, "db-2", lease("x", "", ""), "db-2 may keep no Lease but db-primary"},
		"it renews":                              {lease("db-primary", "db-2", "3"), "db-2", lease("db-primary", "db-2", "3"), ""},
		"it takes one that is free":              {lease("db-primary", "", "3"), "db-2", lease("db-primary", "db-2", "3"), ""},
		"it takes it for a later epoch":          {lease("db-primary", "db-1", "3"), "db-2", lease("db-primary", "db-2", "5"), ""},
		"it takes it in the same epoch":          {lease("db-primary", "db-1", "3"), "db-2", lease("db-primary", "db-2", "3"), "may take the Lease from db-1 for a later epoch only"},
		"it sets the epoch back":                 {lease("db-primary", "", "3"), "db-2", lease("db-primary", "db-2", "2"), "may not set the epoch of a Lease back"},
		"it takes the epoch off":                 {lease("db-primary", "", "3"), "db-2", lease("db-primary", "db-2", ""), "may not set the epoch of a Lease back"},
		"its epoch is no number":                 {lease("db-primary", "", "3"), "db-2", lease("db-primary", "db-2", "99999999999999999999"), "may not set the epoch of a Lease back"},
		"it releases its own":                    {lease("db-primary", "db-2", "3"), "db-2", lease("db-primary", "", "3"), ""},
		"it releases another's":                  {lease("db-primary", "db-1", "3"), "db-2", lease("db-primary", "", "4"), "take nobody else off it"},
		"it says that it was taken from another": {lease("db-primary", "db-1", "3"), "db-2", lease("db-primary", "", "9"), "take nobody else off it"},
		"the operator takes it away":             {lease("db-primary", "db-1", "3"), "cnmsql-operator", lease("db-primary", "", "4"), ""},
		"somebody's own leader election":         {nil, "web-server", lease("web", "web-server-xyz", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			as, err := instanceClient(r.as)
			if err != nil {
				t.Fatal(err)
			}
			if r.before == nil {
				judge(t, as.Create(ctx, r.after, client.DryRunAll), r.refused)
				return
			}
			if err := c.Create(ctx, r.before); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Delete(ctx, r.before) })
			r.after.ResourceVersion = r.before.ResourceVersion
			judge(t, as.Update(ctx, r.after, client.DryRunAll), r.refused)
		})
	}
}
