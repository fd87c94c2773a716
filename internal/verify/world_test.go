package verify

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/testapi"
)

var day = time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)

// world is an API server, an instance, and the Reconciler on them.
type world struct {
	*testapi.Server
	r      *Reconciler
	reg    *prometheus.Registry
	said   control.CheckReport
	silent error
	asked  []string
	sums   [][]string
}

func newWorld(t *testing.T, objs ...client.Object) *world {
	t.Helper()
	w := &world{Server: testapi.New(t, day, objs...), reg: prometheus.NewRegistry()}
	w.r = &Reconciler{Client: w, Live: w, Recorder: w.Recorder(), Instances: w, Metrics: NewMetrics(w.reg), Now: w.Now}
	return w
}

// Check is the instance's.
func (w *world) Check(_ context.Context, c *v1alpha1.Cluster, instance string,
	o control.CheckOrder) (control.CheckReport, error) {
	w.asked = append(w.asked, c.Name+"/"+instance+" "+o.ID)
	w.sums = append(w.sums, o.Sums)
	said := w.said
	said.ID = o.ID
	return said, w.silent
}

// look reconciles once, ten seconds after the last time.
func (w *world) look() time.Duration {
	w.Helper()
	w.Clock = w.Clock.Add(10 * time.Second)
	result, err := w.r.Reconcile(w.Context(),
		ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "db"}})
	if err != nil && !errors.Is(err, testapi.ErrDown) {
		w.Fatal(err)
	}
	return result.RequeueAfter
}

// cluster reads a Cluster; nil when there is none.
func (w *world) cluster(name string) (out *v1alpha1.Cluster) {
	w.Helper()
	w.Aside(func() error {
		c := &v1alpha1.Cluster{}
		err := w.Get(w.Context(), types.NamespacedName{Namespace: "ns", Name: name}, c)
		if err == nil {
			out = c
		}
		return client.IgnoreNotFound(err)
	})
	return out
}

func (w *world) last() *v1alpha1.VerificationStatus {
	w.Helper()
	if s := w.cluster("db").Status.LastVerification; s != nil {
		return s
	}
	return &v1alpha1.VerificationStatus{}
}

// request asks as the plugin does.
func (w *world) request(value string) {
	w.Helper()
	c := w.cluster("db")
	c.Annotations = map[string]string{v1alpha1.AnnotationVerify: value}
	w.Aside(func() error { return w.Update(w.Context(), c) })
}

// restored has the copy take writes.
func (w *world) restored() {
	w.Helper()
	c := w.cluster("db-verify")
	if c == nil || c.Status.Promotion != nil {
		return
	}
	since := metav1.NewMicroTime(c.CreationTimestamp.Add(70 * time.Second))
	c.Status.CurrentPrimary, c.Status.Promotion = "db-verify-1", &v1alpha1.PromotionStatus{Instance: "db-verify-1",
		WritableSince: &since}
	w.Aside(func() error { return w.Status().Update(w.Context(), c) })
}

// untilEnd looks until the verification has ended and nothing is left of it.
func (w *world) untilEnd() *v1alpha1.VerificationStatus {
	w.Helper()
	for range 30 {
		w.look()
		w.restored()
		if s := w.last(); s.EndedAt != nil && s.ClusterUID == "" &&
			w.cluster("db").Annotations[v1alpha1.AnnotationVerify] == "" {
			if c := w.cluster("db-verify"); c != nil && c.Labels[v1alpha1.LabelVerifies] != "" {
				w.Fatalf("it has ended, and its copy is there: %+v", s)
			}
			return s
		}
	}
	w.Fatalf("it does not end: %+v", w.last())
	return nil
}

func db(change ...func(*v1alpha1.Cluster)) *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "uid-1",
		CreationTimestamp: metav1.NewTime(day.Add(-time.Hour * 1000)), Generation: 1}}
	c.Spec.Instances, c.Spec.Storage.Size = 3, "10Gi"
	c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: &v1alpha1.ObjectStoreSpec{Bucket: "b"}, MaxBytesPerSecond: 7}
	established := metav1.NewMicroTime(day)
	c.Status.EstablishedAt = &established
	for _, f := range change {
		f(c)
	}
	return c
}

var sound = control.CheckReport{Done: true, Tables: 40, Checked: 40, BackupID: "b1",
	Executed: gtid.MustParse("8f1c0000-0000-0000-0000-000000000000:1-9"), RestoredUntil: day}
