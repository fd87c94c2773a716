package operator

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/apiconn"
	"cnmsql.co/internal/core"
)

// halfRead is an API server of whose Clusters only the metadata can be read.
type halfRead struct {
	client.Client
	version string
}

func (h *halfRead) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	c := o.(*v1alpha1.Cluster)
	c.Namespace, c.Name, c.UID, c.ResourceVersion = key.Namespace, key.Name, "uid", h.version
	c.UnreadWhy = "spec.failoverPolicy: unknown unit"
	return nil
}

func TestAnUnreadableClusterIsLeftAloneAndTold(t *testing.T) {
	reg, told := prometheus.NewRegistry(), &events.FakeRecorder{Events: make(chan string, 9)}
	api := &halfRead{version: "1"}
	r := &Reconciler{Client: apiconn.Whole(api), Metrics: NewMetrics(reg), Recorder: told,
		clusters: newClusterStates()}
	for _, version := range []string{"1", "1", "2"} {
		api.version = version
		if next, err := r.Reconcile(quietly(t), ctrl.Request{NamespacedName: clusterKey}); err != nil ||
			next != (ctrl.Result{}) {
			t.Errorf("it is looked at again: %v, %v", next, err)
		}
	}
	if len(told.Events) != 2 {
		t.Errorf("%d events of two versions", len(told.Events))
	}
	if n := countedEvents(t, reg); n != 2 {
		t.Errorf("%d events are counted", n)
	}
	if text := <-told.Events; !strings.Contains(text, "Unreadable") || !strings.Contains(text, "spec.failoverPolicy") {
		t.Errorf("%s", text)
	}
	const want = `cnmsql_cluster_blocked{cluster="c",namespace="ns",reason="Unreadable"} 1`
	if text := scraped(reg); !strings.Contains(text, want) {
		t.Errorf("%s", text)
	}
}

// countedEvents is how many events the metric of events says were told.
func countedEvents(t *testing.T, reg *prometheus.Registry) (n int) {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() == "cnmsql_cluster_events_total" {
			for _, s := range f.GetMetric() {
				n += int(s.GetCounter().GetValue())
			}
		}
	}
	return n
}

func scraped(reg *prometheus.Registry) string {
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	return answer.Body.String()
}

func TestAListWithWhatCannotBeReadIsNone(t *testing.T) {
	var unread *apiconn.UnreadError
	c := apiconn.Whole(oneUnread{})
	if err := c.List(t.Context(), &v1alpha1.BackupList{}); !errors.As(err, &unread) || unread.Object.GetName() != "b" {
		t.Errorf("%v", err)
	}
}

type oneUnread struct{ client.Client }

func (oneUnread) List(_ context.Context, all client.ObjectList, _ ...client.ListOption) error {
	b := v1alpha1.Backup{UnreadWhy: "spec.jobTemplate: unknown unit"}
	b.Name = "b"
	all.(*v1alpha1.BackupList).Items = []v1alpha1.Backup{{}, b}
	return nil
}

// TestAnUnreadableBackupKeepsNobodyFromDeciding holds who observes to the third value: each instance may
// be backed up, and which Backup is at fault is told.
func TestAnUnreadableBackupKeepsNobodyFromDeciding(t *testing.T) {
	ob, now := &observer{client: apiconn.Whole(oneUnread{})}, time.Now()
	o := core.Observation{Instances: []core.Instance{{Name: "c-1"},
		{Name: "c-2", Report: core.Known(core.Report{State: core.AwaitingClone}, now, now)}}}
	must(t, ob.backups(t.Context(), aCluster(), &o))
	if !o.Instances[0].BackedUp || !o.Instances[1].BackedUp {
		t.Errorf("an instance is said not to be backed up: %+v", o.Instances)
	}
	if all := o.Cluster.Asides; len(all) != 1 || all[0].Reason != core.ReasonUnreadable ||
		!strings.Contains(all[0].Message, "Backup b ") || !strings.Contains(all[0].Message, "spec.jobTemplate") {
		t.Errorf("told: %+v", all)
	}
}

// Of a Cluster that could never be read no UID is known. It is forgotten all the same once it is gone: an
// alert for it would fire until the operator is started again.
func TestAClusterThatCouldNeverBeReadIsForgotten(t *testing.T) {
	reg := prometheus.NewRegistry()
	none := fake.NewClientBuilder().WithScheme(newScheme(t)).Build()
	r := newTestReconciler(t, none, none)
	r.Metrics = NewMetrics(reg)
	r.Metrics.Unread(clusterKey)
	r.clusters.of(clusterKey).unread = "1"
	if _, err := r.Reconcile(quietly(t), ctrl.Request{NamespacedName: clusterKey}); err != nil {
		t.Fatal(err)
	}
	if text := scraped(reg); strings.Contains(text, `name="c"`) || strings.Contains(text, `cluster="c"`) {
		t.Errorf("%s", text)
	}
	if state := r.clusters.of(clusterKey); state.unread != "" {
		t.Error("what was known of it is kept")
	}
}
