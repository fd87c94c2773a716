package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// said are the series of a registry, each with its value, but for the moments of looks.
func said(reg *prometheus.Registry) []string {
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	var out []string
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "cnmsql_cluster_") && !strings.HasPrefix(line, "cnmsql_cluster_looked_") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// thatRefuses is an operator whose API server answers a write of a status with refuse.
func thatRefuses(t *testing.T, refuse *error, objs ...client.Object) (*Reconciler, client.Client,
	*prometheus.Registry) {
	f := newFake(t).WithReturnManagedFields().WithStatusSubresource(&v1alpha1.Cluster{}).WithObjects(objs...).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client,
			sub string, obj client.Object, o ...client.SubResourceUpdateOption) error {
			if *refuse != nil {
				return *refuse
			}
			return c.SubResource(sub).Update(ctx, obj, o...)
		}}).Build()
	r, reg := operatorOf(t, f), prometheus.NewRegistry()
	r.Metrics = NewMetrics(reg)
	return r, f, reg
}

// aSingle is a Cluster of one instance, with its Pod, to whose manager no stream is opened, its
// claim and its node.
func aSingle() []client.Object {
	c, node, pod, claim := aCluster(), &corev1.Node{}, aPod("c-1", "first", "n1"), aVolume("c-1", "v-c-1")
	c.Spec.Instances, c.Status.InstanceNames, c.Status.Promotion.Size = 1, []string{"c-1"}, 1
	node.Name = "n1"
	pod.Status.PodIP = ""
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	claim.Status.Phase = corev1.ClaimBound
	return []client.Object{c, node, pod, claim}
}

func writable() core.Report {
	return core.Report{Boot: "a", Instance: "c-1", PodUID: "first", State: core.Running, Data: core.DataPopulated,
		WritableEpoch: 1, SeenEpoch: 1, Server: &core.Server{UUID: "u1"}}
}

// The trouble in which nothing can be written down is the one in which metrics are all that is
// left to say it.
func TestMetricsTellOfThePrimaryWhileNoStatusIsTaken(t *testing.T) {
	var refuse error
	r, _, reg := thatRefuses(t, &refuse, aSingle()...)
	look := func(report core.Report) (err error) {
		for range 5 {
			r.says("c-1", report)
			_, err = r.Reconcile(quietly(t), ctrl.Request{NamespacedName: clusterKey})
		}
		return err
	}
	must(t, look(writable()))
	before := said(reg)
	if want := `cnmsql_cluster_writable{cluster="c",namespace="ns"} 1`; !slices.Contains(before, want) {
		t.Fatalf("it is healthy, and there is no %s in\n%s", want, strings.Join(before, "\n"))
	}
	refuse = errors.New("etcdserver: request timed out")
	down := writable()
	down.State, down.WritableEpoch, down.Server, down.Message = core.Failed, 0, nil, "the volume is full"
	if look(down) == nil {
		t.Fatal("no status is taken, and no error is given")
	}
	now := said(reg)
	for _, want := range []string{`cnmsql_cluster_writable{cluster="c",namespace="ns"} 0`,
		`cnmsql_cluster_diagnosis{cluster="c",diagnosis="PrimaryFailed",namespace="ns"} 1`,
		`cnmsql_cluster_primary_epoch{cluster="c",namespace="ns"} 1`} {
		if !slices.Contains(now, want) {
			t.Errorf("its mysqld is down by its manager's own word, and there is no %s in\n%s", want,
				strings.Join(now, "\n"))
		}
	}
}

// lookedOf is the moment of the last look that a registry tells, 0 without one.
func lookedOf(t *testing.T, reg *prometheus.Registry) float64 {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		const name = `cnmsql_cluster_looked_timestamp_seconds{cluster="c",namespace="ns"} `
		if text, is := strings.CutPrefix(strings.TrimSpace(line), name); is {
			at, err := strconv.ParseFloat(text, 64)
			must(t, err)
			return at
		}
	}
	return 0
}

// Rights that were taken from the operator, or a webhook that fails closed, are mostly there before it begins.
func TestHowLongNoStatusIsTakenIsToldByAnOperatorThatBeganLater(t *testing.T) {
	refuse := errors.New("clusters.cnmsql.co \"c\" is forbidden")
	r, _, reg := thatRefuses(t, &refuse, aSingle()...)
	began := float64(time.Now().Unix())
	look := func() (err error) {
		for range 5 {
			r.says("c-1", writable())
			_, err = r.Reconcile(quietly(t), ctrl.Request{NamespacedName: clusterKey})
		}
		return err
	}
	if look() == nil {
		t.Fatal("no status is taken, and no error is given")
	}
	met := lookedOf(t, reg)
	if met < began {
		t.Fatalf("it was met at %f, and the moment is %f", began, met)
	}
	if look() == nil || lookedOf(t, reg) != met {
		t.Errorf("no look has ended since %f, and the moment is %f", met, lookedOf(t, reg))
	}
	refuse = nil
	must(t, look())
	if lookedOf(t, reg) <= met {
		t.Errorf("the status is taken again, and the moment is still %f", met)
	}
	r.forget(clusterKey)
	if at := lookedOf(t, reg); at != 0 {
		t.Errorf("it is gone, and was looked at %f", at)
	}
	r.Metrics.Meets(clusterKey)
	if lookedOf(t, reg) <= met {
		t.Error("another Cluster of the name was met, and has no moment of its own")
	}
}

func TestAClusterThatIsBeingDeletedIsNotHealthy(t *testing.T) {
	var refuse error
	c := aCluster()
	c.Finalizers = []string{v1alpha1.FinalizerStoredArchive}
	r, f, reg := thatRefuses(t, &refuse, c)
	r.Metrics.Observe(c, core.Plan{Status: core.Status{Phase: core.PhaseBlocked, Diagnosis: core.PrimaryHealthy,
		Blocked: &core.Notice{Reason: core.RefusalNoProof}, Ready: 2, EstablishedAt: time.Now()}})
	must(t, f.Delete(t.Context(), c))
	for range 2 {
		_, err := r.Reconcile(quietly(t), ctrl.Request{NamespacedName: clusterKey})
		must(t, err)
	}
	want := []string{`cnmsql_cluster_phase{cluster="c",namespace="ns",phase="Deleting"} 1`}
	if got := said(reg); !slices.Equal(got, want) {
		t.Errorf("it waits for its finalizer, and its series are\n%s", strings.Join(got, "\n"))
	}
	r.forget(clusterKey)
	if got := said(reg); len(got) > 0 {
		t.Errorf("it is gone, and its series are\n%s", strings.Join(got, "\n"))
	}
}

func TestWhetherAClusterIsWritableIsToldFromItsFirstPrimaryOn(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, c := NewMetrics(reg), named("ns", "c")
	for _, tc := range []struct {
		established time.Time
		diagnosis   core.Diagnosis
		want        string
	}{
		{time.Time{}, core.PrimaryPromoting, ""},
		{time.Now(), core.PrimaryHealthy, "1"},
		{time.Now(), core.PrimaryIsolated, "0"}, // commits hang
		{time.Now(), core.PrimaryUnreachable, "0"},
		{time.Now(), core.GroupUnknown, "0"},
	} {
		m.Observe(c, core.Plan{Status: core.Status{Diagnosis: tc.diagnosis, EstablishedAt: tc.established}})
		got := ""
		for _, line := range said(reg) {
			if value, is := strings.CutPrefix(line, `cnmsql_cluster_writable{cluster="c",namespace="ns"} `); is {
				got = value
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q, not %q", tc.diagnosis, got, tc.want)
		}
	}
}

// A node's loss is some ten looks at each of its Clusters.
func TestHowLongMetricsTakeDoesNotGoByTheNumberOfClusters(t *testing.T) {
	plan := core.Plan{Status: core.Status{Phase: core.PhaseHealthy, Diagnosis: core.PrimaryHealthy}}
	other := core.Plan{Status: core.Status{Phase: core.PhaseDegraded, Diagnosis: core.PrimaryHealthy}}
	fastest := func(clusters int) time.Duration {
		m, best := NewMetrics(prometheus.NewRegistry()), time.Hour
		for i := range clusters {
			m.Observe(named("ns", fmt.Sprint("c", i)), plan)
		}
		for range 10 {
			began := time.Now()
			for range 50 {
				m.Observe(named("ns", "c0"), plan)
				m.Observe(named("ns", "c0"), other)
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	if one, many := fastest(1), fastest(5000); many > 20*one {
		t.Errorf("it takes %s with one Cluster, and %s with 5000", one, many)
	}
}
