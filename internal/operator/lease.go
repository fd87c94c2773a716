package operator

import (
	"context"
	"fmt"
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

// forget drops what is kept of a Cluster that is gone.
func (l *leaseClock) forget(cluster types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, leaseKey(cluster))
}

func leaseKey(cluster types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: cluster.Namespace, Name: resources.Names(cluster.Name).Lease()}
}

// handler notes changes as they come, and wakes nobody.
func (l *leaseClock) handler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) {
			l.noteAgain(e.Object, e.Object.GetResourceVersion())
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) {
			l.noteAgain(e.ObjectNew, e.ObjectNew.GetResourceVersion())
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
			l.noteAgain(e.Object, "")
		},
	}
}

// lease is the fact of a cluster's lease as it is in a reader.
func (ob *observer) lease(ctx context.Context, from client.Reader, c *v1alpha1.Cluster) (core.Fact[core.Lease], error) {
	read := time.Now()
	key := types.NamespacedName{Namespace: c.Namespace, Name: resources.Names(c.Name).Lease()}
	record, err := find(ctx, from, &coordination.Lease{}, key)
	if err != nil {
		return core.Fact[core.Lease]{}, fmt.Errorf("reading the lease of the primary: %w", err)
	}
	l := observation.LeaseFacts(record)
	l.UnchangedSince = ob.leases.note(key, l.Version)
	return core.Known(l, read, read), nil
}

// seizeLease takes the record for an epoch that nobody holds yet, if it is still
// the version that was seen. From then on its former holder can neither renew it
// nor take it again.
func (a *actor) seizeLease(ctx context.Context, c *v1alpha1.Cluster, e core.SeizeLease) error {
	key := types.NamespacedName{Namespace: c.Namespace, Name: resources.Names(c.Name).Lease()}
	var record coordination.Lease
	err := a.live.Get(ctx, key, &record)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	isNew := apierrors.IsNotFound(err)
	if isNew {
		record.ObjectMeta = metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name,
			Labels: map[string]string{v1alpha1.LabelCluster: c.Name}, OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Cluster", Name: c.Name, UID: c.UID}}}
	}
	if record.ResourceVersion != e.Version {
		return nil // it has changed: somebody renewed it, or released it
	}
	record.Spec.HolderIdentity, record.Spec.AcquireTime = nil, nil
	if record.Annotations == nil {
		record.Annotations = map[string]string{}
	}
	record.Annotations[v1alpha1.AnnotationEpoch] = strconv.FormatInt(e.Epoch, 10)
	if isNew {
		err = a.client.Create(ctx, &record)
	} else {
		err = a.client.Update(ctx, &record)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
