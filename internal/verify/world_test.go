package verify

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/gtid"
)

var day = time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)

var errAPI = errors.New("the API server does not answer")

// world is an API server, a clock, an instance, and the Reconciler on them.
type world struct {
	*testing.T
	client.WithWatch
	r      *Reconciler
	reg    *prometheus.Registry
	told   chan string
	clock  time.Time
	said   control.CheckReport
	silent error
	asked  []string
	sums   [][]string
	// failAt is the call that fails, after it was carried out if late; 0 for none.
	calls, failAt int
	late          bool
	refuse        error
}

func newWorld(t *testing.T, objs ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, told: make(chan string, 1000), clock: day, reg: prometheus.NewRegistry()}
	w.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).
		WithStatusSubresource(&v1alpha1.Cluster{}, &v1alpha1.Backup{}).WithInterceptorFuncs(w.funcs()).Build()
	w.r = &Reconciler{Client: w, Live: w, Recorder: &events.FakeRecorder{Events: w.told}, Instances: w,
		Metrics: NewMetrics(w.reg), Now: func() time.Time { return w.clock }}
	return w
}

func (w *world) do(call func() error) error {
	w.calls++
	if w.calls != w.failAt {
		return call()
	}
	if w.late {
		_ = call()
	}
	return errAPI
}

func (w *world) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
			return w.do(func() error { return c.Get(ctx, key, obj, o...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			return w.do(func() error { return c.List(ctx, list, o...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			return w.do(func() error {
				if w.refuse != nil {
					return w.refuse
				}
				obj.SetCreationTimestamp(metav1.NewTime(w.clock))
				obj.SetUID(types.UID(fmt.Sprintf("copy-%d", w.calls)))
				return c.Create(ctx, obj, o...)
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			return w.do(func() error { return c.Delete(ctx, obj) }) // the fake knows no preconditions
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			return w.do(func() error { return c.Patch(ctx, obj, p, o...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
			return w.do(func() error { return c.SubResource(sub).Patch(ctx, obj, p, o...) })
		},
	}
}

// Check is the instance's.
func (w *world) Check(_ context.Context, c *v1alpha1.Cluster, instance string, o control.CheckOrder) (control.CheckReport, error) {
	w.asked = append(w.asked, c.Name+"/"+instance+" "+o.ID)
	w.sums = append(w.sums, o.Sums)
	said := w.said
	said.ID = o.ID
	return said, w.silent
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// aside asks what never fails.
func (w *world) aside(call func() error) {
	w.Helper()
	calls, failAt := w.calls, w.failAt
	w.failAt = 0
	w.must(call())
	w.calls, w.failAt = calls, failAt
}

// look reconciles once, ten seconds after the last time.
func (w *world) look() time.Duration {
	w.Helper()
	w.clock = w.clock.Add(10 * time.Second)
	result, err := w.r.Reconcile(w.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "db"}})
	if err != nil && !errors.Is(err, errAPI) {
		w.Fatal(err)
	}
	return result.RequeueAfter
}

// cluster reads a Cluster; nil when there is none.
func (w *world) cluster(name string) (out *v1alpha1.Cluster) {
	w.Helper()
	w.aside(func() error {
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
	w.aside(func() error { return w.Update(w.Context(), c) })
}

// restored has the copy take writes.
func (w *world) restored() {
	w.Helper()
	c := w.cluster("db-verify")
	if c == nil || c.Status.Promotion != nil {
		return
	}
	since := metav1.NewMicroTime(c.CreationTimestamp.Add(70 * time.Second))
	c.Status.CurrentPrimary, c.Status.Promotion = "db-verify-1", &v1alpha1.PromotionStatus{Instance: "db-verify-1", WritableSince: &since}
	w.aside(func() error { return w.Status().Update(w.Context(), c) })
}

// untilEnd looks until the verification has ended and nothing is left of it.
func (w *world) untilEnd() *v1alpha1.VerificationStatus {
	w.Helper()
	for range 30 {
		w.look()
		w.restored()
		if s := w.last(); s.EndedAt != nil && s.ClusterUID == "" && w.cluster("db").Annotations[v1alpha1.AnnotationVerify] == "" {
			if c := w.cluster("db-verify"); c != nil && c.Labels[v1alpha1.LabelVerifies] != "" {
				w.Fatalf("it has ended, and its copy is there: %+v", s)
			}
			return s
		}
	}
	w.Fatalf("it does not end: %+v", w.last())
	return nil
}

func (w *world) events() (out []string) {
	for len(w.told) > 0 {
		out = append(out, <-w.told)
	}
	return out
}

func db(change ...func(*v1alpha1.Cluster)) *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "uid-1", CreationTimestamp: metav1.NewTime(day.Add(-time.Hour * 1000)), Generation: 1}}
	c.Spec.Instances, c.Spec.Storage.Size = 3, "10Gi"
	c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: &v1alpha1.ObjectStoreSpec{Bucket: "b"}, MaxBytesPerSecond: 7}
	established := metav1.NewMicroTime(day)
	c.Status.EstablishedAt = &established
	for _, f := range change {
		f(c)
	}
	return c
}

var sound = control.CheckReport{Done: true, Tables: 40, Checked: 40, BackupID: "b1", Executed: gtid.MustParse("8f1c0000-0000-0000-0000-000000000000:1-9"), RestoredUntil: day}
