package operator

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/internal/core"
)

// TestNodesThatMayNotBeReadHoldUpNothing holds that a look goes on, takes no node for one that is gone, and tells.
func TestNodesThatMayNotBeReadHoldUpNothing(t *testing.T) {
	objs := []client.Object{aPod("c-1", "first", "n1"), aPod("c-2", "second", "n2"), bound(t, "c-1"), bound(t, "c-2")}
	server := newFake(t).WithObjects(objs...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object,
			o ...client.GetOption) error {
			if _, is := obj.(*corev1.Node); is {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, key.Name, nil)
			}
			return w.Get(ctx, key, obj, o...)
		}}).Build()
	r, c := newTestReconciler(t, server, server), aCluster()
	r.says("c-2", follows())
	o, plan, err := r.decide(t.Context(), c, nil)
	must(t, err)
	if plan.Status.Diagnosis == core.PodGone || o.Instances[0].Node.Known() {
		t.Errorf("diagnosed is %s, and the node of c-1 is known: %t", plan.Status.Diagnosis,
			o.Instances[0].Node.Known())
	}
	if !strings.Contains(plan.Status.Reason, "no Node is known") {
		t.Errorf("the Cluster says %s", plan.Status.Reason)
	}
}
