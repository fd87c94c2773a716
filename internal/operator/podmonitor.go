package operator

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// podMonitors are what is known of the PodMonitors of Clusters. Their kind may not be there, and so nobody
// watches them: those that are there are listed once, and each is applied when it is to be another one. What
// somebody changes of one by hand stays until then.
type podMonitors struct {
	mu     sync.Mutex
	of     map[types.NamespacedName]podMonitor // by Cluster
	listed time.Time                           // at which they were asked for last
	known  bool                                // which there are
}

// podMonitor is what became of one.
type podMonitor struct {
	// wanted is the hash of what was applied; zero of one that was found.
	wanted [sha256.Size]byte
	// problem is why there is none, and at when that was found.
	problem *core.Problem
	at      time.Time
}

// isSettled reports whether nothing is to be done for what is wanted now.
func (m podMonitor) isSettled(wanted [sha256.Size]byte, now time.Time) bool {
	return m.wanted == wanted && (m.problem == nil || now.Sub(m.at) < refusedPauseMost)
}

func (m *podMonitors) get(key types.NamespacedName) (is podMonitor, there bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	is, there = m.of[key]
	return is, there
}

func (m *podMonitors) note(key types.NamespacedName, is podMonitor) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of[key] = is
}

func (m *podMonitors) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, key)
}

// find lists those that are there, once. A Kubernetes that does not know the kind has none. Who cannot be
// asked is asked again after a while: it hinders no Cluster that wants none. Nobody waits for who asks.
func (m *podMonitors) find(ctx context.Context, from client.Reader, now time.Time) {
	if !m.isToBeListed(now) {
		return
	}
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(resources.PodMonitorKind.GroupVersion().WithKind(resources.PodMonitorKind.Kind + "List"))
	err := from.List(ctx, all, client.HasLabels{v1alpha1.LabelCluster})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = err == nil || meta.IsNoMatchError(err) || apierrors.IsNotFound(err)
	for _, is := range all.Items {
		key := types.NamespacedName{Namespace: is.GetNamespace(), Name: is.GetLabels()[v1alpha1.LabelCluster]}
		if _, there := m.of[key]; !there {
			m.of[key] = podMonitor{}
		}
	}
}

// isToBeListed reports whether the caller is to list them, and notes that it does.
func (m *podMonitors) isToBeListed(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known || now.Sub(m.listed) < refusedPauseMost {
		return false
	}
	m.listed = now
	return true
}

// podMonitor keeps the Cluster's PodMonitor, or removes it where the user wants none. That there is none
// hinders nothing: why not is an aside.
func (p *prerequisites) podMonitor(ctx context.Context, c *v1alpha1.Cluster, asides *[]core.Problem) error {
	wanted := resources.PodMonitor(c)
	key, now := client.ObjectKeyFromObject(c), time.Now()
	p.podMonitors.find(ctx, p.live, now)
	is, there := p.podMonitors.get(key)
	if wanted == nil {
		if !there {
			return nil
		}
		return p.dropPodMonitor(ctx, c)
	}
	text, err := wanted.MarshalJSON()
	if err != nil {
		return err
	}
	if hash := sha256.Sum256(text); !is.isSettled(hash, now) {
		is = podMonitor{wanted: hash, problem: p.applyPodMonitor(ctx, c, wanted), at: now}
		p.podMonitors.note(key, is)
	}
	if is.problem != nil {
		*asides = append(*asides, *is.problem)
	}
	return nil
}

// applyPodMonitor returns why there is none; nil once it is as it is wanted.
func (p *prerequisites) applyPodMonitor(ctx context.Context, c *v1alpha1.Cluster,
	wanted *unstructured.Unstructured) *core.Problem {
	found, err := p.foundPodMonitor(ctx, c)
	if err == nil && found != nil && !resources.Belongs(c, found) {
		return unmonitored("delete or rename that one", "there is a PodMonitor %s already, which does not belong to "+
			"this Cluster", c.Name)
	}
	if err == nil {
		err = p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted),
			client.FieldOwner(resources.FieldManager), client.ForceOwnership)
	}
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return unmonitored("install the Prometheus Operator", "this Kubernetes does not know the kind %s (%s)",
			resources.PodMonitorKind.Kind, resources.PodMonitorKind.GroupVersion())
	default:
		return unmonitored("mend that", "the API server has not made the PodMonitor %s (%v)", c.Name, err)
	}
}

// unmonitored tells why there is none, and what to do.
func unmonitored(do, why string, args ...any) *core.Problem {
	return &core.Problem{Reason: core.ProblemPodMonitor, Message: fmt.Sprintf(
		"spec.monitoring.enablePodMonitor is true, and %s: %s, or set it to false. It is tried again each minute",
		fmt.Sprintf(why, args...), do)}
}

// foundPodMonitor is the object of the Cluster's name, nil if there is none.
func (p *prerequisites) foundPodMonitor(ctx context.Context, c *v1alpha1.Cluster) (*unstructured.Unstructured,
	error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(resources.PodMonitorKind)
	return find(ctx, p.live, found, client.ObjectKeyFromObject(c))
}

// dropPodMonitor removes the Cluster's own, and forgets it once it is gone.
func (p *prerequisites) dropPodMonitor(ctx context.Context, c *v1alpha1.Cluster) error {
	found, err := p.foundPodMonitor(ctx, c)
	if err == nil && found != nil && resources.Belongs(c, found) {
		_, err = deleteThis(ctx, p.client, found, found.GetUID())
	}
	if err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("delete PodMonitor %s: %w", c.Name, err)
	}
	p.podMonitors.forget(client.ObjectKeyFromObject(c))
	return nil
}
