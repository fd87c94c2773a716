package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/testbed"
)

// What the chart gives an operator's Deployment.
const (
	labelName         = "app.kubernetes.io/name"
	chartName         = "cnmsql"
	operatorContainer = "operator"
)

// The namespace that the demo has made says so: no other is deleted.
const (
	labelManager = "app.kubernetes.io/managed-by"
	managerDemo  = "cnmsql-demo"
)

var definitions = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
	Kind: "CustomResourceDefinition"}

// shown is how many objects a refusal names.
const shown = 10

// operator is the Deployment of an operator.
type operator struct {
	types.NamespacedName
	image string
}

// admit looks at a Kubernetes that the demo has not made, and returns an error when
// the demo must not install an operator of that image there. What cannot be seen may
// be there, and is an error, too.
func admit(ctx context.Context, c client.Reader, image string) error {
	clusters, err := clustersOf(ctx, c)
	if err != nil {
		return err
	}
	operators, err := operatorsOf(ctx, c)
	if err != nil {
		return err
	}
	if err := refusal(clusters, operators, image); err != nil {
		return err
	}
	_, err = namespaceIsThere(ctx, c)
	return err
}

// refusal returns an error when an operator of that image, installed beside these
// Clusters and operators, would replace or restart what is not the demo's.
func refusal(clusters []types.NamespacedName, operators []operator, image string) error {
	var found []string
	var replaced bool // the operator at the very place of the demo's
	for _, c := range clusters {
		if c.Namespace != cluster.Namespace {
			found = append(found, "the Cluster "+c.String())
		}
	}
	for _, o := range operators {
		switch own := o.NamespacedName == testbed.Operator; {
		case !own:
			found = append(found, fmt.Sprintf("the operator %s with image %s", o, o.image))
		case o.image != image:
			found = append(found, fmt.Sprintf("the operator %s with image %s, not %s", o, o.image, image))
			replaced = true
		}
	}
	if len(found) == 0 {
		return nil
	}
	advice := "Use another Kubernetes, or unset KUBECONFIG for a local one"
	if replaced && len(found) == 1 {
		advice += "; where nobody needs that operator, set OPERATOR_IMAGE to its image (it must hold the demo's " +
			"writer), or delete its Deployment"
	}
	if more := len(found) - shown; more > 0 {
		found = append(found[:shown], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("this Kubernetes is in use, and nothing was installed: the demo would replace its operator, "+
		"CustomResourceDefinitions and policies, and restart the instances of all Clusters with the demo's image. "+
		"There is\n  %s\n%s", strings.Join(found, "\n  "), advice)
}

// clustersOf returns the names of all Clusters. That there are none follows only from
// the absence of their CustomResourceDefinition, or from an empty list: discovery can
// leave out what is there.
func clustersOf(ctx context.Context, c client.Reader) ([]types.NamespacedName, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(definitions)
	key := types.NamespacedName{Name: clusterResource}
	if err := c.Get(ctx, key, crd); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("look for the CustomResourceDefinition %s: %w", key.Name, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ClusterList"))
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("look for Clusters in all namespaces: %w", err)
	}
	var names []types.NamespacedName
	for i := range list.Items {
		names = append(names, client.ObjectKeyFromObject(&list.Items[i]))
	}
	slices.SortFunc(names, byName)
	return names, nil
}

// operatorsOf returns the operators of all namespaces, by the label that the chart
// gives them.
func operatorsOf(ctx context.Context, c client.Reader) ([]operator, error) {
	var list appsv1.DeploymentList
	if err := c.List(ctx, &list, client.MatchingLabels{labelName: chartName}); err != nil {
		return nil, fmt.Errorf("look for operators in all namespaces: %w", err)
	}
	var operators []operator
	for i := range list.Items {
		d := &list.Items[i]
		o := operator{NamespacedName: client.ObjectKeyFromObject(d)}
		for _, container := range d.Spec.Template.Spec.Containers {
			if container.Name == operatorContainer {
				o.image = container.Image
			}
		}
		operators = append(operators, o)
	}
	slices.SortFunc(operators, func(a, b operator) int { return byName(a.NamespacedName, b.NamespacedName) })
	return operators, nil
}

func byName(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// namespaceIsThere reports whether the demo's namespace is there. One that the demo
// has not made is an error.
func namespaceIsThere(ctx context.Context, c client.Reader) (bool, error) {
	var ns corev1.Namespace
	err := c.Get(ctx, types.NamespacedName{Name: cluster.Namespace}, &ns)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for the namespace %s: %w", cluster.Namespace, err)
	case ns.Labels[labelManager] != managerDemo:
		return false, errors.New("the namespace " + cluster.Namespace + " does not say that the demo has made it (" +
			labelManager + "=" + managerDemo + "), and is left alone: delete it, or give it that label, when all " +
			"that is in it may go")
	}
	return true, nil
}
