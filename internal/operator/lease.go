package operator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/resources"
)

// leaseClock times how long each lease record has been seen unchanged, from the
// operator's own clock; the times in the record are never read.
type leaseClock struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]leaseSeen
}

type leaseSeen struct {
	version string
	since   time.Time
}

func newLeaseClock() *leaseClock {
	return &leaseClock{seen: map[types.NamespacedName]leaseSeen{}}
}

// note tells since when the record has been as it is; version "" is none.
func (l *leaseClock) note(key types.NamespacedName, version string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, known := l.seen[key]; known && s.version == version {
		return s.since
	}
	s := leaseSeen{version: version, since: time.Now()}
	l.seen[key] = s
	return s.since
}

// noteAgain notes a change of a record that is timed already. Leases that nobody asked for,
// and those of Clusters that are gone, are none of these.
func (l *leaseClock) noteAgain(obj client.Object, version string) {
	key := client.ObjectKeyFromObject(obj)
	l.mu.Lock()
	_, known := l.seen[key]
	l.mu.Unlock()
	if known {
		l.note(key, version)
	}
}

// isMissing reports whether there was no such record when it was seen last. A record that was
// never looked for is not said to be missing.
func (l *leaseClock) isMissing(key types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, known := l.seen[key]
	return known && s.version == ""
}

// forget drops what is kept of a Cluster that is gone.
func (l *leaseClock) forget(cluster types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, leaseKey(cluster))
}

func leaseKey(cluster types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: cluster.Namespace, Name: resources.Names(cluster.Name).Lease()}
}

// handler notes changes as they come. It wakes whoever makes a record that was deleted.
func (l *leaseClock) handler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) {
			l.noteAgain(e.Object, e.Object.GetResourceVersion())
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) {
			l.noteAgain(e.ObjectNew, e.ObjectNew.GetResourceVersion())
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			l.noteAgain(e.Object, "")
			if name := e.Object.GetLabels()[v1alpha1.LabelCluster]; name != "" {
				key := types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: name}
				q.Add(reconcile.Request{NamespacedName: key})
			}
		},
	}
}

// lease is the fact of a cluster's lease as it is in a reader.
func (ob *observer) lease(ctx context.Context, from client.Reader, c *v1alpha1.Cluster) (core.Fact[core.Lease], error) {
	read := time.Now()
	key := leaseKey(client.ObjectKeyFromObject(c))
	record, err := find(ctx, from, &coordination.Lease{}, key)
	if err != nil {
		return core.Fact[core.Lease]{}, fmt.Errorf("reading the lease of the primary: %w", err)
	}
	l := observation.LeaseFacts(record)
	l.UnchangedSince = ob.leases.note(key, l.Version)
	return core.Known(l, read, read), nil
}

// lease makes the primary's record where there is none. What is in it is the instances'.
func (p *prerequisites) lease(ctx context.Context, c *v1alpha1.Cluster) error {
	wanted := resources.Lease(c)
	if wanted == nil {
		return nil
	}
	record, err := find(ctx, p.client, &coordination.Lease{}, client.ObjectKeyFromObject(wanted))
	if err == nil && (record == nil || !isOwned(c, record)) { // the cache may be behind
		record, err = find(ctx, p.live, &coordination.Lease{}, client.ObjectKeyFromObject(wanted))
	}
	switch {
	case err != nil:
		return fmt.Errorf("reading the lease of the primary: %w", err)
	case record == nil:
		if err := p.client.Create(ctx, wanted); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("making the lease of the primary: %w", err)
		}
	case !isOwned(c, record):
		return &nameTakenError{kind: "Lease", name: record.Name}
	}
	return nil
}

// isOwned reports whether the object names the Cluster as an owner. It need not be the controller:
// records that instances made, as they did once, do not name it so.
func isOwned(c *v1alpha1.Cluster, obj client.Object) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == c.UID })
}

// seizeLease takes the record for an epoch that nobody holds yet, if it is still
// the version that was seen. From then on its former holder can neither renew it
// nor take it again.
func (a *actor) seizeLease(ctx context.Context, c *v1alpha1.Cluster, e core.SeizeLease) error {
	record, err := a.leaseOf(ctx, c, e.Version)
	if record == nil || err != nil {
		return err
	}
	return a.leaveLease(ctx, record, e.Epoch)
}

// resetLease leaves a record that somebody spoilt to nobody. The status is read after the record,
// from the API server: a cache that is behind must take it from nobody who was promoted since.
func (a *actor) resetLease(ctx context.Context, c *v1alpha1.Cluster, e core.ResetLease) error {
	record, err := a.leaseOf(ctx, c, e.Version)
	if record == nil || err != nil {
		return err
	}
	var now v1alpha1.Cluster
	if err := a.live.Get(ctx, client.ObjectKeyFromObject(c), &now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if p := now.Status.Promotion; now.UID != c.UID || p == nil || !e.IsOf(p.Epoch) {
		return nil
	}
	return a.leaveLease(ctx, record, e.Epoch)
}

// leaseOf reads the record, nil if it is another version by now: somebody renewed it, or
// released it; or if there is none, for it is made first.
func (a *actor) leaseOf(ctx context.Context, c *v1alpha1.Cluster, version string) (*coordination.Lease, error) {
	var record coordination.Lease
	if err := a.live.Get(ctx, leaseKey(client.ObjectKeyFromObject(c)), &record); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if record.ResourceVersion != version {
		return nil, nil
	}
	return &record, nil
}

// leaveLease writes the record so that nobody holds it, at an epoch.
func (a *actor) leaveLease(ctx context.Context, record *coordination.Lease, epoch int64) error {
	record.Spec.HolderIdentity, record.Spec.AcquireTime = nil, nil
	if record.Annotations == nil {
		record.Annotations = map[string]string{}
	}
	record.Annotations[v1alpha1.AnnotationEpoch] = strconv.FormatInt(epoch, 10)
	if err := a.client.Update(ctx, record); !apierrors.IsConflict(err) {
		return err
	}
	return nil
}
