package operator

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/pki"
)

var clusterKey = types.NamespacedName{Namespace: "ns", Name: "c"}

// api is an API server of the given objects that counts what it is asked.
type api struct {
	client.Client
	gets, patches             int
	refusePatch, refuseDelete error
}

// newFake has the indexes that the caches have.
func newFake(t *testing.T) *fake.ClientBuilder {
	b := fake.NewClientBuilder().WithScheme(newScheme(t)).WithTypeConverters(
		oneConverter(), managedfields.NewDeducedTypeConverter())
	for _, kind := range listed {
		b = b.WithIndex(kind, byCluster, labelledCluster)
	}
	return b
}

func newAPI(t *testing.T, objs ...client.Object) *api {
	t.Helper()
	a := &api{}
	a.Client = newFake(t).WithReturnManagedFields().WithObjects(
		objs...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			o ...client.GetOption) error {
			a.gets++
			return c.Get(ctx, key, obj, o...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration,
			o ...client.ApplyOption) error {
			if err := isApplicable(ctx, c, obj); err != nil {
				return err
			}
			return c.Apply(ctx, obj, o...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			if err := cmp.Or(a.refuseDelete, isMeant(ctx, c, obj, o)); err != nil {
				return err
			}
			return c.Delete(ctx, obj, o...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch,
			o ...client.PatchOption) error {
			a.patches++
			if a.refusePatch != nil {
				return a.refusePatch
			}
			return c.Patch(ctx, obj, p, o...)
		},
	}).Build()
	return a
}

// isMeant holds the UID in a deletion's preconditions against the object's, which the
// fake API server does not.
func isMeant(ctx context.Context, c client.Client, obj client.Object, o []client.DeleteOption) error {
	asked := (&client.DeleteOptions{}).ApplyOptions(o)
	if asked.Preconditions == nil || asked.Preconditions.UID == nil {
		return nil
	}
	there := obj.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), there); err != nil {
		return err
	}
	if there.GetUID() != *asked.Preconditions.UID {
		return apierrors.NewConflict(schema.GroupResource{}, obj.GetName(), errors.New("the UID is another"))
	}
	return nil
}

// isApplicable refuses to make an object of which a version is applied, as the API server does for its UID;
// the fake one gives none.
func isApplicable(ctx context.Context, c client.Client, obj runtime.ApplyConfiguration) error {
	text, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	var applied unstructured.Unstructured
	if err := applied.UnmarshalJSON(text); err != nil || applied.GetResourceVersion() == "" {
		return err
	}
	err = c.Get(ctx, client.ObjectKeyFromObject(&applied), applied.DeepCopy())
	if apierrors.IsNotFound(err) {
		return apierrors.NewConflict(schema.GroupResource{}, applied.GetName(), errors.New("there is none"))
	}
	return err
}

// oneScheme knows what the operator asks an API server for, and oneConverter the fields of Kubernetes' own kinds.
// Nobody changes them, and to make them takes longer than most tests.
var (
	oneScheme = sync.OnceValues(func() (*runtime.Scheme, error) {
		s := runtime.NewScheme()
		// the fake goes through all kinds at each apply
		return s, errors.Join(batchv1.AddToScheme(s), coordination.AddToScheme(s), corev1.AddToScheme(s),
			policyv1.AddToScheme(s), rbacv1.AddToScheme(s), storagev1.AddToScheme(s), v1alpha1.AddToScheme(s))
	})
	oneConverter = sync.OnceValue(func() managedfields.TypeConverter {
		return applyconfigurations.NewTypeConverter(clientgoscheme.Scheme)
	})
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s, err := oneScheme()
	must(t, err)
	return s
}

// realAPIServer is a client of an API server with the chart's definitions, which ends with the test.
// CNMSQL_KUBE_BIN names a directory with etcd and kube-apiserver.
func realAPIServer(t *testing.T) client.Client {
	t.Helper()
	bin := os.Getenv("CNMSQL_KUBE_BIN")
	if bin == "" {
		t.Skip("CNMSQL_KUBE_BIN is not set: make test-real sets it")
	}
	env := &envtest.Environment{BinaryAssetsDirectory: bin,
		CRDDirectoryPaths: []string{filepath.Join("../../charts/cnmsql", "files")}, ErrorIfCRDPathMissing: true}
	conf, err := env.Start()
	must(t, err)
	t.Cleanup(func() { _ = env.Stop() })
	server, err := client.New(conf, client.Options{Scheme: newScheme(t)})
	must(t, err)
	return server
}

// quietly is a context in which nothing is logged.
func quietly(t *testing.T) context.Context { return ctrl.LoggerInto(t.Context(), logr.Discard()) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newTestReconciler reads from a cache, and live.
func newTestReconciler(t *testing.T, cached, live client.Client) *Reconciler {
	streams := NewStreams(t.Context(), logr.Discard(), func(types.NamespacedName) {})
	pre := newPrerequisites(cached, live)
	return &Reconciler{clusters: newClusterStates(), Client: cached, Live: live, writes: newStatusWrites(),
		streams: streams, prerequisites: pre,
		observer: &observer{client: cached, live: live, streams: streams, ended: newEndedPods(),
			unmade: newUnmadePods(), leases: newLeaseClock(), growths: pre.growths,
			wanted: func(context.Context, *v1alpha1.Cluster, string, int) observation.Wanted {
				return observation.Wanted{}
			},
			binary: func() core.Binary { return core.Binary{} }}}
}

// aCluster of two instances whose primary is c-1, in its Pod "first" on node n1.
func aCluster() *v1alpha1.Cluster {
	long := metav1.NewMicroTime(time.Now().Add(-time.Hour))
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "cluster", Generation: 1}}
	c.Spec.Instances = 2
	c.Spec.Storage.Size = "1Gi"
	c.Status.InstanceNames = []string{"c-1", "c-2"}
	c.Status.CurrentPrimary, c.Status.TargetPrimary, c.Status.PrimaryEpoch = "c-1", "c-1", 1
	c.Status.EstablishedAt, c.Status.CurrentPrimaryTimestamp = &long, &long
	c.Status.Promotion = &v1alpha1.PromotionStatus{Epoch: 1, Instance: "c-1", Proof: string(core.ProofBootstrap),
		GrantedAt: &long, WritableSince: &long, PodUID: "first", Node: "n1", Size: 2, Leased: true}
	return c
}

func aPod(instance, uid, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: instance, UID: types.UID(uid),
			Labels: map[string]string{v1alpha1.LabelCluster: "c", v1alpha1.LabelInstance: instance},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(aCluster(),
				v1alpha1.GroupVersion.WithKind("Cluster"))}},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "127.0.0.1",
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: layout.Container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
	}
}

// says puts a word into a manager's mouth, after those that it has said before.
func (r *Reconciler) says(instance string, report core.Report) {
	r.streams.mu.Lock()
	defer r.streams.mu.Unlock()
	now, key := time.Now(), types.NamespacedName{Namespace: "ns", Name: instance}
	st := r.streams.streams[key]
	if st == nil {
		st = &stream{cluster: clusterKey, since: now, cancel: func() {},
			client: control.NewClient("127.0.0.1:1", &tls.Config{})}
		r.streams.put(key, st)
	}
	if last, known := st.words.Report.Get(); known && last.PodUID != report.PodUID {
		st.words.Lose()
	}
	st.words.Take(report, now, now)
}

func anAuthority(t *testing.T) *pki.CA {
	t.Helper()
	bundle, err := pki.NewCA("c", time.Now())
	must(t, err)
	ca, err := pki.ParseCA(bundle)
	must(t, err)
	return ca
}
