package operator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// monitored is a Cluster whose user asks for a PodMonitor.
func monitored(asks bool) *v1alpha1.Cluster {
	c := aCluster()
	c.Spec.Monitoring = &v1alpha1.MonitoringSpec{EnablePodMonitor: &asks}
	return c
}

func podMonitorOf(t *testing.T, from client.Reader, c *v1alpha1.Cluster) *unstructured.Unstructured {
	t.Helper()
	is := &unstructured.Unstructured{}
	is.SetGroupVersionKind(resources.PodMonitorKind)
	err := from.Get(t.Context(), client.ObjectKeyFromObject(c), is)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return is
}

func TestAPodMonitorIsMadeAndRemoved(t *testing.T) {
	a := newAPI(t)
	p, c := newPrerequisites(a, a), monitored(true)
	for range 2 {
		before := a.gets
		must(t, p.podMonitor(t.Context(), c, new([]core.Problem)))
		if is := podMonitorOf(t, a, c); is == nil || !resources.Belongs(c, is) {
			t.Fatalf("there is %v", is)
		} else if port, _, _ := unstructured.NestedSlice(is.Object, "spec", "podMetricsEndpoints"); len(port) != 1 {
			t.Errorf("Prometheus asks %v", port)
		}
		if before > 0 && a.gets != before+1 { // the one of this test
			t.Errorf("%d requests for what is as it should be", a.gets-before-1)
		}
	}
	c.Spec.InheritedMetadata = &v1alpha1.InheritedMetadata{
		Labels: map[string]v1alpha1.LabelValue{"release": "prometheus"}}
	must(t, p.podMonitor(t.Context(), c, new([]core.Problem)))
	if is := podMonitorOf(t, a, c); is.GetLabels()["release"] != "prometheus" {
		t.Errorf("it has the labels %v", is.GetLabels())
	}
	// Another operator has made it, and the user has gone back to none.
	next := newPrerequisites(a, a)
	for _, nobody := range []*v1alpha1.Cluster{aCluster(), monitored(false)} {
		must(t, next.podMonitor(t.Context(), nobody, new([]core.Problem)))
	}
	if is := podMonitorOf(t, a, c); is != nil {
		t.Errorf("nobody wants it, and there is %v", is)
	}
}

func TestAPodMonitorOfSomebodyElseIsLeftAlone(t *testing.T) {
	theirs := &unstructured.Unstructured{}
	theirs.SetGroupVersionKind(resources.PodMonitorKind)
	theirs.SetNamespace("ns")
	theirs.SetName("c")
	a := newAPI(t, theirs)
	p, c := newPrerequisites(a, a), monitored(true)
	var told []core.Problem
	must(t, p.podMonitor(t.Context(), c, &told))
	if len(told) != 1 || told[0].Reason != core.ProblemPodMonitor ||
		!strings.Contains(told[0].Message, "does not belong") {
		t.Errorf("told %v", told)
	}
	c.Spec.Monitoring = nil
	must(t, p.podMonitor(t.Context(), c, &told))
	if podMonitorOf(t, a, c) == nil {
		t.Error("it was removed")
	}
}

// A Kubernetes without the Prometheus Operator is asked once a minute, and its user is told at each look.
func TestAKubernetesThatKnowsNoPodMonitor(t *testing.T) {
	asked := 0
	unknown := &meta.NoKindMatchError{GroupKind: resources.PodMonitorKind.GroupKind()}
	live := interceptor.NewClient(newFake(t).Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			asked++
			return unknown
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return unknown },
	})
	p, c := newPrerequisites(live, live), monitored(true)
	for range 3 {
		var told []core.Problem
		must(t, p.podMonitor(t.Context(), c, &told))
		if len(told) != 1 || !strings.Contains(told[0].Message, "does not know the kind PodMonitor") {
			t.Errorf("told %v", told)
		}
	}
	if asked != 1 {
		t.Errorf("it was asked %d times", asked)
	}
	is, _ := p.podMonitors.get(client.ObjectKeyFromObject(c))
	if is.isSettled(is.wanted, time.Now().Add(2*refusedPauseMost)) {
		t.Error("it is not tried again")
	}
	var told []core.Problem
	if must(t, p.podMonitor(t.Context(), aCluster(), &told)); len(told) != 0 {
		t.Errorf("who wants none is told %v", told)
	}
}

// Which there are is asked again, but not at each look, as long as no answer comes.
func TestWhoCannotBeAskedForPodMonitorsIsAskedAgain(t *testing.T) {
	asked := 0
	m := &newPrerequisites(nil, nil).podMonitors
	live := interceptor.NewClient(newFake(t).Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			asked++
			m.get(clusterKey) // no other Cluster waits for the answer
			return errors.New("no answer")
		}})
	now := time.Now()
	for _, after := range []time.Duration{0, time.Second, refusedPauseMost, refusedPauseMost + time.Second} {
		m.find(t.Context(), live, now.Add(after))
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}
