package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/apiconn"
	"cnmsql.co/internal/backups"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/operator/alive"
	"cnmsql.co/internal/operator/lead"
	"cnmsql.co/internal/verify"
)

// Options of the operator.
type Options struct {
	MetricsAddress string
	ProbeAddress   string
	LeaderElect    bool
	// Address at which other operators reach this one's probes; "" when it is not known.
	Address string
	// Namespace in which the operator's own lease is kept.
	Namespace string
	// OperatorImage is copied from into every instance's Pod.
	OperatorImage string
	// DefaultImage holds mysqld where a Cluster names no image.
	DefaultImage string
	// Workers is how many clusters are looked at side by side.
	Workers int
	// DroppedLines counts lines of the log that nobody read; nil where nobody counts.
	DroppedLines func() uint64
}

// ErrBeginAnew says that the process must start again before it does anything else: another operator may lead by
// now, or what it was told of the API server is of the past.
var ErrBeginAnew = errors.New("the operator begins anew")

// forEver is longer than a process lives.
const forEver = 10 * 365 * 24 * time.Hour

// Run runs the operator until ctx ends. It is over with ErrBeginAnew, too. An API server that does not answer is
// waited for.
func Run(ctx context.Context, conf *rest.Config, o Options) error {
	probes, err := alive.Serve(o.ProbeAddress)
	if err != nil {
		return err
	}
	defer func() { _ = probes.Close() }()
	// The API server has its own fair queues; a client-side limit would only
	// hold up a failover because another cluster is being provisioned.
	conf = apiconn.Bound(conf)
	conf.QPS = -1
	if alive.Await(ctx, conf, ctrl.Log.WithName("setup")) != nil {
		return nil // it is to end
	}
	mgr, err := newManager(ctx, conf, o)
	if err == nil {
		go readyWhenRead(ctx, mgr, probes)
		err = mgr.Start(ctx)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	return whyOver(ctx, conf, o.LeaderElect && hasLed(mgr), err)
}

// readyWhenRead says that the operator can work once what it watches was read: a rollout must not replace one that
// works by one that may not read.
func readyWhenRead(ctx context.Context, mgr ctrl.Manager, probes *alive.Probes) {
	if mgr.GetCache().WaitForCacheSync(ctx) {
		probes.BecomeReady()
	}
}

// whyOver returns the error with which the operator ends: ErrBeginAnew where another try may succeed, and nil where
// ctx has ended meanwhile.
func whyOver(ctx context.Context, conf *rest.Config, led bool, err error) error {
	switch {
	case led:
		return fmt.Errorf("%w: the lead was lost, or given up: %w", ErrBeginAnew, err)
	case alive.IsFromIt(err), alive.Answers(ctx, conf) != nil:
		if !alive.Pause(ctx) {
			return nil
		}
		return fmt.Errorf("%w: the API server does not answer as it should: %w", ErrBeginAnew, err)
	}
	return err
}

// hasLed reports whether the manager was chosen to work; nil is one that could not be made.
func hasLed(mgr ctrl.Manager) bool {
	if mgr == nil {
		return false
	}
	select {
	case <-mgr.Elected():
		return true
	default:
		return false
	}
}

// newManager makes what runs the controllers; nil with the error.
func newManager(ctx context.Context, conf *rest.Config, o Options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	caches, err := cacheOptions()
	if err != nil {
		return nil, err
	}
	options := ctrl.Options{
		Scheme: scheme, Cache: caches, NewCache: alive.NewEachAlone,
		Metrics: metricsserver.Options{BindAddress: "0"}, // see serveMetrics
		// A kind that cannot be listed yet is tried until it can. To end for it would end all failovers.
		Controller: config.Controller{CacheSyncTimeout: forEver},
	}
	if o.LeaderElect {
		who := lead.Options{Namespace: o.Namespace, Address: o.Address, ProbeAddress: o.ProbeAddress}
		if err := lead.Elect(ctx, conf, who, &options); err != nil {
			return nil, err
		}
	}
	MeterLog(metrics.Registry, o.DroppedLines)
	mgr, err := ctrl.NewManager(conf, options)
	if err != nil {
		return nil, err
	}
	if err := indexCaches(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	streams, err := addController(ctx, mgr, o)
	if err != nil {
		return nil, err
	}
	if err := addBackups(mgr, streams, o); err != nil {
		return nil, err
	}
	if err := serveMetrics(mgr, o.MetricsAddress); err != nil {
		return nil, err
	}
	return mgr, nil
}

func addController(ctx context.Context, mgr ctrl.Manager, o Options) (*Streams, error) {
	woken := make(chan event.GenericEvent, 1024)
	streams := NewStreams(ctx, mgr.GetLogger().WithName("streams"), func(cluster types.NamespacedName) {
		c := &v1alpha1.Cluster{}
		c.Namespace, c.Name = cluster.Namespace, cluster.Name
		select {
		case woken <- event.GenericEvent{Object: c}:
		case <-ctx.Done():
		}
	})
	r := newReconciler(mgr, streams, o)
	b := ctrl.NewControllerManagedBy(mgr).Named("cluster").
		For(&v1alpha1.Cluster{}).
		Watches(&corev1.Pod{}, r.podHandler()).
		Watches(&coordination.Lease{}, r.observer.leases.handler()).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(namedCluster)).
		WatchesRawSource(source.Channel(woken, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, NewQueue: r.newQueue,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](core.PassRetryFirst,
				core.PassRetryMost)})
	for _, owned := range []client.Object{&corev1.Service{}, &corev1.Secret{}, &corev1.ServiceAccount{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{}, &policyv1.PodDisruptionBudget{}} {
		b = b.Owns(owned, builder.WithPredicates(r.clusters.changesAre()))
	}
	return streams, b.Complete(r)
}

// addBackups adds the controllers of Backup and ScheduledBackup, that of gaps in archives, that
// which removes archives with their Clusters, that which merges archives, and that which tries backups.
func addBackups(mgr ctrl.Manager, streams *Streams, o Options) error {
	recorder := mgr.GetEventRecorder("cnmsql")
	whole, live := clients(mgr)
	backups.NewMetrics(metrics.Registry, mgr.GetClient())
	for _, controller := range []interface{ SetupWithManager(mgr ctrl.Manager) error }{
		&backups.Reconciler{Client: whole, Live: live, Recorder: recorder, OperatorImage: o.OperatorImage,
			Lags: streams.Lag, Now: time.Now},
		&backups.ScheduledReconciler{Client: whole, Live: live, Recorder: recorder, Now: time.Now},
		&backups.GapReconciler{Client: whole, Live: live, Recorder: recorder, Now: time.Now},
		&backups.ReclaimReconciler{Client: whole, Live: live, Recorder: recorder, OperatorImage: o.OperatorImage,
			Now: time.Now},
		&backups.MergeReconciler{Client: whole, Live: live, Recorder: recorder, OperatorImage: o.OperatorImage,
			Now: time.Now},
		&verify.Reconciler{Client: whole, Live: live, Recorder: recorder, Instances: verify.Instances{Client: whole},
			Lags: streams.Lag, Metrics: verify.NewMetrics(metrics.Registry), Now: time.Now},
	} {
		if err := controller.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return nil
}

// clients are those of all controllers: one that goes by the caches, and one past them.
func clients(mgr ctrl.Manager) (client.Client, client.Reader) {
	return apiconn.Whole(apiconn.Prompt(mgr.GetClient())), apiconn.WholeReader(apiconn.PromptReader(mgr.GetAPIReader()))
}

// namedCluster is the Cluster that an object names. A claim may outlive its Cluster, and
// has no owner then.
func namedCluster(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{clusterOf(obj)}
}

func newReconciler(mgr ctrl.Manager, streams *Streams, o Options) *Reconciler {
	whole, live := clients(mgr)
	pre := newPrerequisites(whole, live)
	unmade := newUnmadePods()
	act := &actor{client: whole, live: live, prerequisites: pre, streams: streams,
		orders: newOrders(), requests: newRequests(), unmade: unmade,
		operatorImage: o.OperatorImage, defaultImage: o.DefaultImage}
	return &Reconciler{
		Client: whole, Live: live, Recorder: mgr.GetEventRecorder("cnmsql"),
		Metrics: NewMetrics(metrics.Registry),
		streams: streams, prerequisites: pre, actor: act, writes: newStatusWrites(),
		observer: &observer{client: whole, live: live, streams: streams, ended: newEndedPods(),
			unmade: unmade, leases: newLeaseClock(), growths: pre.growths,
			wanted: act.wanted, binary: ownBinary(mgr.GetLogger())},
		clusters: newClusterStates(),
	}
}

// podHandler wakes a Pod's cluster, and remembers Pods that ended, or never ran.
func (r *Reconciler) podHandler() handler.EventHandler {
	enqueue := func(obj client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if pod, ok := obj.(*corev1.Pod); ok {
			r.observer.ended.note(pod)
		}
		q.Add(clusterOf(obj))
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			enqueue(e.Object, q)
			if pod, ok := e.Object.(*corev1.Pod); ok && !e.DeleteStateUnknown && pod.Spec.NodeName == "" {
				go r.noteUnmade(ctx, pod, func() { q.Add(clusterOf(pod)) })
			}
		},
	}
}

func clusterOf(obj client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(),
		Name: obj.GetLabels()[v1alpha1.LabelCluster]}}
}

// noteUnmade remembers a Pod that was deleted before it had a node, and then wakes.
func (r *Reconciler) noteUnmade(ctx context.Context, pod *corev1.Pod, wake func()) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if key, is := podKeyBy(pod); is && neverRan(ctx, r.Live, pod) {
		r.observer.unmade.note(key, pod.Annotations[v1alpha1.AnnotationAwaited])
		wake()
	}
}

// serverName makes a TLS configuration expect an instance's name.
func serverName(conf *tls.Config, host string) *tls.Config {
	own := conf.Clone()
	own.ServerName = host
	return own
}
