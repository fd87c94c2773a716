package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

const (
	// eventDelay is how long the event that tells a reason may come after the
	// status that tells the fact.
	eventDelay = 2 * time.Second
	// watchAgain is the pause before a watch that ended is opened again.
	watchAgain = 200 * time.Millisecond
)

// errPending tells that a request is neither carried out nor refused.
var errPending = errors.New("no answer yet")

// follow says what the operator does, until the verdict on a Cluster is anything
// but errPending; that is returned, with the Cluster as it was last, when ctx ends
// first.
func (p *caller) follow(ctx context.Context, c *v1alpha1.Cluster, progress func(*v1alpha1.ClusterStatus) string,
	verdict func(context.Context, *v1alpha1.Cluster) error) (*v1alpha1.Cluster, error) {
	began, said := p.now(), map[string]bool{}
	look := func(now *v1alpha1.Cluster) error {
		if now.UID != c.UID {
			return fmt.Errorf("cluster %s was deleted meanwhile, and there is another one of the name", now.Name)
		}
		c = now
		// What goes back and forth is said once.
		if text := progress(&c.Status); !said[text] {
			said[text] = true
			p.say("%6.1fs  %s", p.now().Sub(began).Seconds(), inNamespace(p.key.Namespace, text))
		}
		return verdict(ctx, c)
	}
	for {
		changes, err := p.watch(ctx, c)
		// Who may not watch reads again and again: the request is written, and is answered.
		if err != nil && ctx.Err() == nil && !apierrors.IsForbidden(err) {
			return c,
				fmt.Errorf(
					"following Cluster %s: %w; the request is written, look with: kubectl cnmsql status %s -n %s",
					p.key.Name, err, p.key.Name, p.key.Namespace)
		}
		for changes != nil {
			change, open := <-changes
			now, ok := change.Object.(*v1alpha1.Cluster)
			if !open || !ok {
				break
			}
			if now.Name != p.key.Name {
				continue
			}
			if change.Type == watch.Deleted {
				return c, fmt.Errorf("cluster %s was deleted meanwhile", now.Name)
			}
			if err := look(now); !errors.Is(err, errPending) {
				return c, err
			}
		}
		if !pause(ctx, watchAgain) {
			return c, errPending
		}
		now := &v1alpha1.Cluster{}
		switch err := p.client.Get(ctx, p.key, now); {
		case apierrors.IsNotFound(err):
			return c, fmt.Errorf("cluster %s was deleted meanwhile", p.key.Name)
		case err == nil:
			if err := look(now); !errors.Is(err, errPending) {
				return c, err
			}
		}
	}
}

// watch begins where c was read, so that no step is missed.
func (p *caller) watch(ctx context.Context, c *v1alpha1.Cluster) (<-chan watch.Event, error) {
	w, err := p.client.Watch(ctx, &v1alpha1.ClusterList{}, &client.ListOptions{
		Namespace:     p.key.Namespace,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", p.key.Name),
		Raw:           &metav1.ListOptions{ResourceVersion: c.ResourceVersion},
	})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, w.Stop)
	return w.ResultChan(), nil
}

func progress(s *v1alpha1.ClusterStatus) string {
	if op := s.Operation; op != nil {
		return fmt.Sprintf("%s, %s: %s", op.Kind, op.Step, s.PhaseReason)
	}
	return fmt.Sprintf("%s: %s", s.Phase, s.PhaseReason)
}

// told are the events that were there before, by name and count: no clock tells
// new ones from old.
type told map[string]bool

func (p *caller) toldSoFar(ctx context.Context, c *v1alpha1.Cluster) told {
	out := told{}
	for _, e := range listEvents(ctx, p.client, c) {
		out[eventKey(&e)] = true
	}
	return out
}

// newEvent is the newest that the operator has told since, of those that are meant.
// It is waited for a moment; nil when there is none.
func (p *caller) newEvent(ctx context.Context, c *v1alpha1.Cluster, before told,
	isMeant func(*eventsv1.Event) bool) *eventsv1.Event {
	ctx, cancel := context.WithTimeout(ctx, eventDelay)
	defer cancel()
	for {
		var newest *eventsv1.Event
		all := listEvents(ctx, p.client, c)
		for i := range all {
			e := &all[i]
			if !before[eventKey(e)] && isMeant(e) && (newest == nil || newest.EventTime.Before(&e.EventTime)) {
				newest = e
			}
		}
		if newest != nil || !pause(ctx, watchAgain) {
			return newest
		}
	}
}

func isWarning(e *eventsv1.Event) bool { return e.Type == corev1.EventTypeWarning }

// because of one of these reasons.
func because(reasons ...core.Reason) func(*eventsv1.Event) bool {
	return func(e *eventsv1.Event) bool { return slices.Contains(reasons, core.Reason(e.Reason)) }
}

// listEvents returns those of a Cluster; none when they may not be read.
func listEvents(ctx context.Context, c client.Reader, cluster *v1alpha1.Cluster) []eventsv1.Event {
	list := &eventsv1.EventList{}
	if err := c.List(ctx, list, client.InNamespace(cluster.Namespace)); err != nil {
		return nil
	}
	var out []eventsv1.Event
	for _, e := range list.Items {
		if e.Regarding.Kind == "Cluster" && e.Regarding.Name == cluster.Name {
			out = append(out, e)
		}
	}
	return out
}

func eventKey(e *eventsv1.Event) string {
	n := int32(0)
	if e.Series != nil {
		n = e.Series.Count
	}
	return fmt.Sprintf("%s/%d", e.Name, n)
}

// pause is false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
