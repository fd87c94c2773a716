package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

const (
	// eventDelay is how long the event that tells a reason may come after the
	// status that tells the fact.
	eventDelay = 2 * time.Second
	// watchAgain is the pause before a watch that ended is opened anew.
	watchAgain = 200 * time.Millisecond
)

// follow prints what the operator does until the wish is fulfilled or refused.
func (p *promoter) follow(ctx context.Context, w *wish) error {
	began, last := p.now(), ""
	for {
		changes, err := p.watch(ctx, w.cluster)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("following Cluster %s: %w; the request is written, look with: kubectl cnmsql status %s -n %s", p.key.Name, err, p.key.Name, p.key.Namespace)
		}
		for changes != nil {
			change, open := <-changes
			c, ok := change.Object.(*v1alpha1.Cluster)
			if !open || !ok {
				break
			}
			if c.Name != p.key.Name {
				continue
			}
			if change.Type == watch.Deleted {
				return fmt.Errorf("cluster %s was deleted meanwhile", c.Name)
			}
			w.cluster = c
			if now := progress(&c.Status); now != last {
				last = now
				p.say("%6.1fs  %s", p.now().Sub(began).Seconds(), now)
			}
			if err := p.verdict(ctx, w, began); !errors.Is(err, errPending) {
				return err
			}
		}
		if !pause(ctx, watchAgain) {
			return p.unanswered(w, p.now().Sub(began))
		}
		if c, err := getCluster(ctx, p.client, p.key); err == nil {
			w.cluster = c
			if err := p.verdict(ctx, w, began); !errors.Is(err, errPending) {
				return err
			}
		}
	}
}

// watch begins where c was read, so that no step is missed.
func (p *promoter) watch(ctx context.Context, c *v1alpha1.Cluster) (<-chan watch.Event, error) {
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

// verdict is nil when the wish is fulfilled, errPending while it may be.
func (p *promoter) verdict(ctx context.Context, w *wish, began time.Time) error {
	s := &w.cluster.Status
	switch {
	case isSettledOn(s, w.target):
		p.say("%s is the primary of %s (epoch %d), %s after the request.", w.target, p.key.Name, s.PrimaryEpoch, p.now().Sub(began).Round(time.Millisecond))
		return nil
	case s.Operation == nil && s.TargetPrimary != w.target:
		return fmt.Errorf("%s was not promoted: %s; the primary is %s", w.target, p.reason(ctx, w), s.CurrentPrimary)
	default:
		return errPending
	}
}

// reason is what the operator warned of since the request was written. Events
// that were there before are told apart by their names and counts, not by any
// clock.
func (p *promoter) reason(ctx context.Context, w *wish) string {
	ctx, cancel := context.WithTimeout(ctx, eventDelay)
	defer cancel()
	for {
		var newest *eventsv1.Event
		all := listEvents(ctx, p.client, w.cluster)
		for i := range all {
			e := &all[i]
			if e.Type == corev1.EventTypeWarning && !w.told[eventKey(e)] && (newest == nil || newest.EventTime.Before(&e.EventTime)) {
				newest = e
			}
		}
		if newest != nil {
			return fmt.Sprintf("%s: %s", newest.Reason, newest.Note)
		}
		if !pause(ctx, watchAgain) {
			return fmt.Sprintf("status.targetPrimary was set to %s (%s)", orElse(w.cluster.Status.TargetPrimary, "nobody"), w.cluster.Status.PhaseReason)
		}
	}
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

func (p *promoter) unanswered(w *wish, after time.Duration) error {
	s := &w.cluster.Status
	return fmt.Errorf("%s is not the primary after %s; last: %s. The request stays in status.targetPrimary; to follow: kubectl cnmsql status %s -n %s; to withdraw it: kubectl cnmsql promote %s %s -n %s; if nothing happened at all, see that the operator runs: %s",
		w.target, after.Round(100*time.Millisecond), progress(s), p.key.Name, p.key.Namespace, p.key.Name, s.CurrentPrimary, p.key.Namespace, findOperator)
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
