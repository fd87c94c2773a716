package crd

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// TestTheOperatorMayMakeAPodMonitor once the kind is there, and is told before that it is not.
func TestTheOperatorMayMakeAPodMonitor(t *testing.T) {
	installed(t)
	ctx, admin, operator := context.Background(), api(t), as(t, "cnmsql-system", "cnmsql-operator")
	made := typed(t, "scraped")
	asks := true
	made.Spec.Monitoring = &v1alpha1.MonitoringSpec{EnablePodMonitor: &asks}
	wanted := resources.PodMonitor(made)
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(resources.PodMonitorKind)
	if err := operator.Get(ctx, client.ObjectKeyFromObject(made), found); !meta.IsNoMatchError(err) {
		t.Fatalf("without the kind: %v", err)
	}
	kind := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(podMonitors), &kind.Object); err != nil {
		t.Fatal(err)
	}
	if err := admin.Create(ctx, kind); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(ctx, kind) })
	lists := func(context.Context) (bool, error) {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(resources.PodMonitorKind)
		return operator.List(ctx, all, client.HasLabels{v1alpha1.LabelCluster}) == nil, nil
	}
	if wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 20*time.Second, true, lists) != nil {
		t.Fatal("the operator cannot list PodMonitors")
	}
	for range 2 {
		apply(t, operator, wanted.DeepCopy(), resources.FieldManager)
	}
	err := operator.Get(ctx, client.ObjectKeyFromObject(made), found)
	if err != nil || !resources.Belongs(made, found) {
		t.Errorf("there is %v, %v", found, err)
	}
	if err := operator.Delete(ctx, found); err != nil {
		t.Error(err)
	}
}

// podMonitors is as much of the Prometheus Operator's definition as is used.
const podMonitors = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podmonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {plural: podmonitors, singular: podmonitor, kind: PodMonitor, listKind: PodMonitorList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              selector:
                type: object
                properties: {matchLabels: {type: object, additionalProperties: {type: string}}}
              podTargetLabels: {type: array, items: {type: string}}
              podMetricsEndpoints: {type: array, items: {type: object, properties: {port: {type: string}}}}
`
