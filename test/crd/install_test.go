package crd

import (
	"context"
	"crypto/rand"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

func TestTheInstallManifestIsAccepted(t *testing.T) { installed(t) }

// installed applies dist/install.yaml.
func installed(t *testing.T) {
	t.Helper()
	c := api(t)
	objects, err := read("../../dist/install.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		apply(t, c, obj, "install")
	}
}

func TestTheOperatorMayMakeEveryObject(t *testing.T) {
	installed(t)
	c, made := as(t, "cnmsql-system", "cnmsql-operator"), typed(t, "rights")
	for _, obj := range objects(t, made) {
		u, err := resources.ForApply(obj)
		if err != nil {
			t.Fatal(err)
		}
		apply(t, c, u, resources.FieldManager)
	}
	u := cluster(t, made.Name, "{}")
	judge(t, c.Status().Patch(context.Background(), u, merge(`{"status":{"phase":"Provisioning"}}`)), "")
}

func TestAnInstanceMayDoWhatItNeedsAndNoMore(t *testing.T) {
	installed(t)
	ctx, made := context.Background(), typed(t, "least")
	for _, obj := range []runtime.Object{resources.Role(made, "least-1"), resources.RoleBinding(made, "least-1")} {
		u, err := resources.ForApply(obj)
		if err != nil {
			t.Fatal(err)
		}
		apply(t, api(t), u, resources.FieldManager)
	}
	c := as(t, made.Namespace, "least-1")
	me := "least-1"
	lease := resources.Lease(made)
	if err := api(t).Create(ctx, lease); err != nil {
		t.Fatal(err)
	}
	lease.Spec.HolderIdentity, lease.Annotations = &me, map[string]string{v1alpha1.AnnotationEpoch: "1"}
	other := lease.DeepCopy()
	other.Name, other.ResourceVersion = "other", ""
	u := cluster(t, made.Name, "{}")
	promote(t, api(t), u, me, 1)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ClusterList"))
	for _, step := range []struct {
		name string
		err  func() error
		may  bool
	}{
		{"read its Cluster", func() error { return c.Get(ctx, client.ObjectKeyFromObject(u), u) }, true},
		{"watch its Cluster", func() error {
			w, err := c.Watch(ctx, list, client.InNamespace(made.Namespace), client.MatchingFields{"metadata.name": made.Name})
			if err == nil {
				w.Stop()
			}
			return err
		}, true},
		{"watch all Clusters", func() error { _, err := c.Watch(ctx, list, client.InNamespace(made.Namespace)); return err }, false},
		{"list all Clusters", func() error { return c.List(ctx, list, client.InNamespace(made.Namespace)) }, false},
		{"patch nothing in the status", func() error { return c.Status().Patch(ctx, u, merge(`{}`)) }, true},
		{"replace the status", func() error { return c.Status().Update(ctx, u) }, false},
		{"change the spec", func() error { return c.Patch(ctx, u, merge(`{"spec":{"instances":2}}`)) }, false},
		{"create the Lease", func() error { return c.Create(ctx, lease.DeepCopy()) }, false},
		{"take the Lease", func() error { return c.Update(ctx, lease) }, true},
		{"create another Lease", func() error { return c.Create(ctx, other) }, false},
		{"renew another Lease", func() error { return c.Update(ctx, other) }, false},
		{"delete the Lease", func() error { return c.Delete(ctx, lease) }, false},
		{"read a Secret", func() error {
			return c.Get(ctx, client.ObjectKey{Namespace: made.Namespace, Name: "x"}, &corev1.Secret{})
		}, false},
		{"read a Pod", func() error { return c.Get(ctx, client.ObjectKey{Namespace: made.Namespace, Name: "x"}, &corev1.Pod{}) }, false},
	} {
		err := step.err()
		if step.may && err != nil || !step.may && !apierrors.IsForbidden(err) {
			t.Errorf("may %s: want %t, got %v", step.name, step.may, err)
		}
	}
}

// typed makes a Cluster in the API server and returns it as the operator reads it.
func typed(t *testing.T, name string) *v1alpha1.Cluster {
	t.Helper()
	c, ctx := api(t), context.Background()
	u := cluster(t, name, "{}")
	if err := c.Create(ctx, u); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(ctx, u) })
	return typedOf(t, u)
}

func typedOf(t *testing.T, u *unstructured.Unstructured) *v1alpha1.Cluster {
	t.Helper()
	out := &v1alpha1.Cluster{}
	if err := api(t).Get(context.Background(), client.ObjectKeyFromObject(u), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// as acts as a ServiceAccount, with the rights it has.
func as(t *testing.T, namespace, name string) client.WithWatch {
	t.Helper()
	conf := rest.CopyConfig(server)
	conf.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	c, err := client.NewWithWatch(conf, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func apply(t *testing.T, c client.Client, obj *unstructured.Unstructured, owner string) {
	t.Helper()
	err := c.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(owner),
		client.ForceOwnership)
	if err != nil {
		t.Errorf("applying %s %s: %v", obj.GetKind(), obj.GetName(), err)
	}
}

// objects are those that are made for a cluster and its first instance.
func objects(t *testing.T, c *v1alpha1.Cluster) []runtime.Object {
	t.Helper()
	now := c.CreationTimestamp.Time
	authority, err := pki.NewCA(c.Name, now)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := pki.ParseCA(authority)
	if err != nil {
		t.Fatal(err)
	}
	name := resources.InstanceName(c.Name, 1)
	leaf, err := ca.Issue(pki.InstanceLeaf(name, c.Namespace, resources.ServiceNames(c, name)...), now)
	if err != nil {
		t.Fatal(err)
	}
	claim, err := resources.VolumeClaim(c, name, 1)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := resources.AppSecret(c, nil, nil, nil, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	for _, s := range resources.Services(c, "") {
		objects = append(objects, s)
	}
	return append(objects,
		resources.DisruptionBudget(c), resources.CASecret(c, authority), secret,
		resources.ServiceAccount(c, name), resources.Role(c, name), resources.RoleBinding(c, name),
		resources.InstanceService(c, name), resources.InstanceTLSSecret(c, name, leaf), claim,
		resources.Pod(c, name, resources.PodOptions{OperatorImage: "cnmsql", DefaultImage: "mysql", ServerID: 1}),
	)
}
