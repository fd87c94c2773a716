package crd

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// What refuses a label says who may set it, or what the Pod is not.
const who, what = "only the operator sets the labels", "is not an instance of Cluster sel"

// TestOnlyAnInstanceCarriesItsLabels: the Services lead clients to whoever carries them.
func TestOnlyAnInstanceCarriesItsLabels(t *testing.T) {
	installed(t)
	ctx, c := context.Background(), typed(t, "sel")
	operator, admin := as(t, "cnmsql-system", "cnmsql-operator"), api(t)
	user := podUser(t)
	real := resources.Pod(c, "sel-1", resources.PodOptions{OperatorImage: "cnmsql", DefaultImage: "mysql", ServerID: 1})
	judge(t, operator.Create(ctx, real.DeepCopy()), "")
	t.Cleanup(func() { _ = admin.Delete(ctx, real, client.GracePeriodSeconds(0)) })
	copied := real.DeepCopy()
	copied.Name = "a-copy"
	plain := copied.DeepCopy()
	plain.Labels, plain.OwnerReferences = map[string]string{v1alpha1.LabelCluster: "sel", "app": "shop"}, nil
	orphan := real.DeepCopy()
	orphan.Name, orphan.OwnerReferences = "sel-2", nil
	orphan.Labels[v1alpha1.LabelInstance] = "sel-2"
	counted := plain.DeepCopy()
	counted.Labels["app.kubernetes.io/component"] = "instance"
	forged := real.DeepCopy()
	forged.Name = "sel-2"
	forged.Labels[v1alpha1.LabelInstance] = "sel-2"
	for name, r := range map[string]struct {
		by      client.Client
		pod     *corev1.Pod
		refused string
	}{
		"a copy, by a user":                        {user, copied, who},
		"a copy, by an administrator":              {admin, copied, what},
		"a Pod that nobody controls":               {admin, orphan, what},
		"one that only the budget counts":          {user, counted, who},
		"one that looks like an instance":          {user, forged, who},
		"one that names the Cluster and no more":   {user, plain, ""},
		"a new instance, by the operator":          {operator, forged, ""},
		"a copy, by the operator's own mistake":    {operator, copied, what},
		"a copy under an instance's name, by hand": {user, func() *corev1.Pod { p := forged.DeepCopy(); p.OwnerReferences = nil; return p }(), who},
	} {
		t.Run(name, func(t *testing.T) { judge(t, r.by.Create(ctx, r.pod.DeepCopy(), client.DryRunAll), r.refused) })
	}
	judge(t, user.Create(ctx, plain), "")
	t.Cleanup(func() { _ = admin.Delete(ctx, plain, client.GracePeriodSeconds(0)) })
	labelsAreHeld(t, c, user, operator)
}

// labelsAreHeld tries to change the labels of the instance sel-1 and of the Pod a-copy.
func labelsAreHeld(t *testing.T, c *v1alpha1.Cluster, user, operator client.Client) {
	ctx, admin := context.Background(), api(t)
	label := func(key, value string) client.Patch {
		return merge(`{"metadata":{"labels":{"` + key + `":` + value + `}}}`)
	}
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace}}
	}
	for name, r := range map[string]struct {
		by      client.Client
		pod     string
		patch   client.Patch
		status  bool
		refused string
	}{
		"another's Pod is labelled":                     {user, "a-copy", label(v1alpha1.LabelInstance, `"sel-1"`), false, who},
		"by way of its status":                          {user, "a-copy", label(v1alpha1.LabelInstance, `"sel-1"`), true, who},
		"by an administrator":                           {admin, "a-copy", label(v1alpha1.LabelRoutable, `"true"`), false, what},
		"an instance is routed to by hand":              {user, "sel-1", label(v1alpha1.LabelRoutable, `"true"`), false, who},
		"an instance is hidden from its operator":       {user, "sel-1", label(v1alpha1.LabelCluster, `null`), false, who},
		"an instance gets another's name":               {admin, "sel-1", label(v1alpha1.LabelInstance, `"sel-2"`), false, what},
		"the operator moves a role":                     {operator, "sel-1", label(v1alpha1.LabelRole, `"replica"`), false, ""},
		"a label of somebody else":                      {user, "sel-1", label("team", `"db"`), false, ""},
		"an annotation that asks the operator to fence": {user, "sel-1", merge(`{"metadata":{"annotations":{"` + v1alpha1.AnnotationFencing + `":"on"}}}`), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if r.status {
				judge(t, r.by.Status().Patch(ctx, pod(r.pod), r.patch, client.DryRunAll), r.refused)
				return
			}
			judge(t, r.by.Patch(ctx, pod(r.pod), r.patch, client.DryRunAll), r.refused)
		})
	}
	judge(t, user.Delete(ctx, pod("sel-1"), client.DryRunAll), "")
}

// podUser may do everything to Pods, and to Clusters what the chart's role for editors allows.
func podUser(t *testing.T) client.Client {
	return granted(t, "pod-user", "", "pods", "pods/status")
}
