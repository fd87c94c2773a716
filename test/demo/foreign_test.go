package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/testbed"
)

// TestTheDemoRefusesWhatItWouldReplaceOrRestart holds the decision over what can stand in
// a Kubernetes: the refusal names each object that is not the demo's, and no other.
func TestTheDemoRefusesWhatItWouldReplaceOrRestart(t *testing.T) {
	key := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	const image = "r/cnmsql:demo"
	own, older := operator{testbed.Operator, image}, operator{testbed.Operator, "i"}
	others := operator{key("prod", "cnmsql-operator"), image}
	second := operator{key("cnmsql-system", "b-operator"), image}
	shop := []types.NamespacedName{key("shop", "db")}
	for name, x := range map[string]struct {
		clusters  []types.NamespacedName
		operators []operator
		says      []string // nothing: the demo goes on
		not       string
	}{
		"nothing is there":       {},
		"an earlier demo's":      {clusters: []types.NamespacedName{cluster}, operators: []operator{own}},
		"the demo's image":       {operators: []operator{own}},
		"a Cluster elsewhere":    {shop, nil, []string{"the Cluster shop/db"}, "operator "},
		"of the demo's name":     {[]types.NamespacedName{key("shop", "demo")}, nil, []string{"Cluster shop/demo"}, ""},
		"beside the demo's":      {[]types.NamespacedName{cluster, key("a", "b")}, nil, []string{"a/b"}, "demo/"},
		"an operator elsewhere":  {nil, []operator{others}, []string{"prod/cnmsql", "KUBECONFIG"}, "OPERATOR_IMAGE"},
		"another image":          {nil, []operator{older}, []string{"image i, not", "OPERATOR_IMAGE"}, ""},
		"another name":           {nil, []operator{second}, []string{"cnmsql-system/b-operator"}, ""},
		"its image is not known": {nil, []operator{{testbed.Operator, ""}}, []string{"not r/cnmsql:demo"}, ""},
		"all of them":            {shop, []operator{own, others}, []string{"shop/db", "prod/"}, "system/"},
		"another image is used":  {shop, []operator{older}, []string{"shop/db", "image i, not"}, "OPERATOR_IMAGE"},
		"more than are shown":    {many(12), nil, []string{"n-9/db", "and 2 more"}, "n-10/db"},
	} {
		err := refusal(x.clusters, x.operators, image)
		if (err != nil) != (x.says != nil) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, what := range x.says {
			if !strings.Contains(err.Error(), what) {
				t.Errorf("%s: the refusal does not say %q: %v", name, what, err)
			}
		}
		if x.not != "" && strings.Contains(objects(err), x.not) {
			t.Errorf("%s: the refusal says %q: %v", name, x.not, err)
		}
	}
}

// objects returns what a refusal says after its first line: what it has found, and what to do.
func objects(err error) string {
	_, text, _ := strings.Cut(err.Error(), "\n")
	return text
}

func many(n int) (names []types.NamespacedName) {
	for i := range n {
		names = append(names, types.NamespacedName{Namespace: fmt.Sprintf("n-%d", i), Name: "db"})
	}
	return names
}

// kubernetes is one with these objects; broken is the kind that cannot be read.
func kubernetes(t *testing.T, broken string, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypeWithName(definitions, &metav1.PartialObjectMetadata{})
	refuse := func(c client.Client, obj runtime.Object) error {
		gvk, err := c.GroupVersionKindFor(obj)
		if err == nil && gvk.Kind == broken {
			return errors.New(broken + " cannot be read")
		}
		return err
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			opts ...client.GetOption) error {
			if err := refuse(c, obj); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := refuse(c, list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
}

func definition() client.Object {
	crd := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: clusterResource}}
	crd.SetGroupVersionKind(definitions)
	return crd
}

func clusterIn(namespace string) client.Object {
	return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}}
}

func deployment(namespace, name, app, image string) client.Object {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
		Labels: map[string]string{labelName: app}}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: operatorContainer, Image: image},
		{Name: "beside", Image: "s"}}
	return d
}

func namespaceOf(manager string) client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Namespace,
		Labels: map[string]string{labelManager: manager}}}
}

// TestTheDemoLooksBeforeItInstalls holds what is read of a Kubernetes, and that an error
// while looking is never taken for nothing there.
func TestTheDemoLooksBeforeItInstalls(t *testing.T) {
	const image = "r/cnmsql:demo"
	const system, name = "cnmsql-system", "cnmsql-operator"
	own, older := deployment(system, name, "cnmsql", image), deployment(system, name, "cnmsql", "i")
	earlier := []client.Object{definition(), own, namespaceOf(managerDemo), clusterIn("cnmsql-demo")}
	elsewhere := deployment("prod", "x-operator", "cnmsql", "i")
	for name, x := range map[string]struct {
		c    client.Client
		says string // nothing: the demo goes on
	}{
		"an empty one":             {kubernetes(t, ""), ""},
		"an earlier demo's":        {kubernetes(t, "", earlier...), ""},
		"no definition, no list":   {kubernetes(t, "ClusterList"), ""},
		"others' Deployments":      {kubernetes(t, "", deployment("a", "b", "mysql", "i")), ""},
		"a Cluster":                {kubernetes(t, "", definition(), own, clusterIn("shop")), "Cluster shop/db"},
		"an operator":              {kubernetes(t, "", elsewhere), "operator prod/x-operator"},
		"another image":            {kubernetes(t, "", older), "image i, not"},
		"a namespace of others":    {kubernetes(t, "", namespaceOf("jo")), "is left alone"},
		"definitions are not read": {kubernetes(t, "CustomResourceDefinition"), "cannot be read"},
		"Clusters are not read":    {kubernetes(t, "ClusterList", definition()), "cannot be read"},
		"Deployments are not read": {kubernetes(t, "DeploymentList"), "cannot be read"},
		"namespaces are not read":  {kubernetes(t, "Namespace"), "cannot be read"},
	} {
		err := admit(t.Context(), x.c, image)
		if (err != nil) != (x.says != "") || err != nil && !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheDemoKnowsTheOperatorThatItInstalls holds name, label and container that are looked
// for against the manifest.
func TestTheDemoKnowsTheOperatorThatItInstalls(t *testing.T) {
	text, err := os.ReadFile("../../dist/install.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		if !strings.Contains(document, "\nkind: Deployment\n") {
			continue
		}
		if err := yaml.Unmarshal([]byte(document), &d); err != nil {
			t.Fatal(err)
		}
	}
	operators, err := operatorsOf(t.Context(), kubernetes(t, "", &d))
	if err != nil || len(operators) != 1 || operators[0].NamespacedName != testbed.Operator ||
		!strings.HasPrefix(operators[0].image, "cnmsql:") {
		t.Errorf("%v, %v", operators, err)
	}
}

// TestOnlyTheNamespaceThatTheDemoMadeIsCleared holds that make demo-down deletes no other
// namespace of that name, and finds nothing to do where there is none.
func TestOnlyTheNamespaceThatTheDemoMadeIsCleared(t *testing.T) {
	for name, x := range map[string]struct {
		c      client.Client
		there  bool
		failed bool
	}{
		"none":       {kubernetes(t, ""), false, false},
		"the demo's": {kubernetes(t, "", namespaceOf(managerDemo)), true, false},
		"others'":    {kubernetes(t, "", namespaceOf("jo")), false, true},
		"unread":     {kubernetes(t, "Namespace"), false, true},
	} {
		there, err := namespaceIsThere(t.Context(), x.c)
		if there != x.there || (err != nil) != x.failed {
			t.Errorf("%s: %v, %v", name, there, err)
		}
		s := &stage{bed: &testbed.Bed{Client: x.c}}
		if !x.there && (s.clear(t.Context()) != nil) != x.failed {
			t.Errorf("%s: is not cleared as it should be", name)
		}
	}
}
