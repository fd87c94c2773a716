package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// leads tells whom a Service for writes is to lead to that was found, nil if there is none.
type leads func(found *corev1.Service) (primary string, err error)

// defaultServices makes and mends the default Services. Where writes are led is decided
// elsewhere: it stays as it is.
func (p *prerequisites) defaultServices(ctx context.Context, c *v1alpha1.Cluster) error {
	return p.services(ctx, c, resources.DefaultServices(c, ""), func(found *corev1.Service) (string, error) {
		if found == nil {
			return "", nil
		}
		return resources.RoutedTo(found), nil
	})
}

// additionalServices makes and mends those that the user asks for besides. Without them the cluster is whole. They
// are no effects of a plan, as the default ones are not: what the spec says is applied, field by field, and nothing
// is decided about it. That one is deleted for which the spec does not ask any more is decided: core.DeleteService.
func (p *prerequisites) additionalServices(ctx context.Context, c *v1alpha1.Cluster) error {
	return p.services(ctx, c, resources.AdditionalServices(c, ""), p.asDefault(ctx, c))
}

// asDefault leads to where -rw leads. The others for writes are changed after it: whatever leads
// elsewhere, or is yet to be made, tells nothing of how old the cache's view of -rw is, which is read again.
func (p *prerequisites) asDefault(ctx context.Context, c *v1alpha1.Cluster) leads {
	key := types.NamespacedName{Namespace: c.Namespace, Name: resources.Names(c.Name).ReadWrite()}
	return func(found *corev1.Service) (string, error) {
		var rw corev1.Service
		if found != nil && p.client.Get(ctx, key, &rw) == nil && resources.RoutedTo(found) == resources.RoutedTo(&rw) {
			return resources.RoutedTo(found), nil
		}
		rw = corev1.Service{}
		err := p.live.Get(ctx, key, &rw)
		return resources.RoutedTo(&rw), client.IgnoreNotFound(err)
	}
}

// routeWrites leads all Services for writes to an instance.
func (p *prerequisites) routeWrites(ctx context.Context, c *v1alpha1.Cluster, to string) error {
	return p.services(ctx, c, resources.WriteServices(c, to),
		func(*corev1.Service) (string, error) { return to, nil })
}

// services applies them all, whatever becomes of one: what a user says of one Service
// must not keep another from leading to the primary, nor the very one that the API server
// refuses for it.
func (p *prerequisites) services(ctx context.Context, c *v1alpha1.Cluster, wanted []*corev1.Service, to leads) error {
	var errs []error
	for _, s := range wanted {
		made := func(found client.Object) (client.Object, error) { return ledTo(s, found, to) }
		err := p.keep(ctx, c, s, s.Name, made)
		var taken *nameTakenError
		switch {
		case errors.As(err, &taken):
			err = fmt.Errorf("make the Service %s: %w", s.Name, err)
		case isRefusedAsItIs(err):
			if failed := p.lead(ctx, c, s.Name, made); failed != nil {
				err = fmt.Errorf("%w; %w", err, failed)
			}
		}
		if err != nil && c.Spec.Managed != nil {
			err = fmt.Errorf("%w (see spec.managed.services)", err)
		}
		errs = append(errs, err)
	}
	return together(errs...)
}

// ledTo is a Service that leads to whom it is to lead to.
func ledTo(wanted *corev1.Service, found client.Object, to leads) (client.Object, error) {
	if !resources.LeadsToPrimary(wanted) {
		return wanted, nil
	}
	is, _ := found.(*corev1.Service)
	primary, err := to(is)
	if err != nil {
		return nil, err
	}
	out := wanted.DeepCopy()
	resources.Lead(out, primary)
	return out, nil
}

// isRefusedAsItIs reports whether the API server, a policy or a webhook takes no such object,
// however often it is asked. After a conflict, a timeout or from a busy server the answer may be
// another the next time, so that these do not count.
func isRefusedAsItIs(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err)
}

// lead has a Service that is there select whom it is to select, and changes nothing else of it. The
// selector is then an update's, by the field manager that applies: the next whole apply, which
// forces, finds no conflict, and takes it over.
func (p *prerequisites) lead(ctx context.Context, c *v1alpha1.Cluster, name string, made maker) error {
	return p.seen(ctx, c, &corev1.Service{}, name, func(found client.Object) error {
		if found == nil {
			return nil
		}
		wanted, err := made(found)
		if err != nil {
			return err
		}
		is, selector := found.(*corev1.Service), wanted.(*corev1.Service).Spec.Selector
		if maps.Equal(is.Spec.Selector, selector) {
			return nil
		}
		before := is.DeepCopy()
		before.UID = "" // so that the patch has it: another Service of that name is refused
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		is.Spec.Selector = selector
		if err := p.client.Patch(ctx, is, patch, client.FieldOwner(resources.FieldManager)); err != nil {
			return fmt.Errorf("lead the Service %s to whom it is to lead: %w", is.Name, err)
		}
		return nil
	})
}

// deleteService deletes a Service, unless the spec asks for it by the API server's word: whoever looks may see a
// Service earlier than the spec for which it was made, and one that is made again has another address.
func (a *actor) deleteService(ctx context.Context, c *v1alpha1.Cluster, e core.DeleteService) error {
	now, err := find(ctx, a.live, &v1alpha1.Cluster{}, client.ObjectKeyFromObject(c))
	if err != nil || now == nil || now.UID != c.UID || resources.AsksForService(now, e.Name) {
		return err
	}
	_, err = a.deleteOnly(ctx, c, &corev1.Service{}, e.Name, e.UID)
	return err
}
