package crd

import (
	"context"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The disruption budget counts by it, and `kubectl scale` writes it.
func TestScaleReadsTheStatusAndWritesInstances(t *testing.T) {
	c, ctx := api(t), context.Background()
	u := withStatus(t, `{"status":{"instances":2,"labelSelector":"mysql.cnmsql.co/cluster=db"}}`)
	scale, named := &autoscalingv1.Scale{}, typedOf(t, u)
	if err := c.SubResource("scale").Get(ctx, named, scale); err != nil {
		t.Fatal(err)
	}
	if scale.Spec.Replicas != 3 || scale.Status.Replicas != 2 || scale.Status.Selector != "mysql.cnmsql.co/cluster=db" {
		t.Errorf("%+v", scale)
	}
	scale.Spec.Replicas = 5
	if err := c.SubResource("scale").Update(ctx, named, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	if n := typedOf(t, u).Spec.Instances; n != 5 {
		t.Errorf("spec.instances is %d", n)
	}
	scale.ResourceVersion, scale.Spec.Replicas = "", 10
	judge(t, c.SubResource("scale").Update(ctx, named, client.WithSubResourceBody(scale)),
		"should be less than or equal to 9")
}
