package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// defaultServices makes and mends the default Services. Where writes are led is decided
// elsewhere: it stays as it is.
func (p *prerequisites) defaultServices(ctx context.Context, c *v1alpha1.Cluster) error {
	_, primary, err := p.roleServices(ctx, c)
	if err != nil {
		return err
	}
	return p.services(ctx, c, resources.DefaultServices(c, primary))
}

// additionalServices makes and mends those that the user asks for besides, and deletes
// what is no longer wanted. Without them the cluster is whole.
func (p *prerequisites) additionalServices(ctx context.Context, c *v1alpha1.Cluster) error {
	present, primary, err := p.roleServices(ctx, c)
	if err != nil {
		return err
	}
	return errors.Join(p.services(ctx, c, resources.AdditionalServices(c, primary)), p.prune(ctx, c, present))
}

// roleServices are the Services that lead to roles, as they are, and where -rw leads.
func (p *prerequisites) roleServices(ctx context.Context,
	c *v1alpha1.Cluster) (present []corev1.Service, primary string, err error) {
	var all corev1.ServiceList
	if err := p.client.List(ctx, &all, those(c)); err != nil {
		return nil, "", err
	}
	present = slices.DeleteFunc(all.Items, func(s corev1.Service) bool { return !resources.IsRoleService(&s) })
	primary, err = p.routedTo(ctx, c, present)
	return present, primary, err
}

// routedTo is where -rw leads. The others for writes are changed after it; if one leads
// elsewhere, what was read here may be older than that change, and is read again.
func (p *prerequisites) routedTo(ctx context.Context, c *v1alpha1.Cluster, present []corev1.Service) (string, error) {
	name := resources.Names(c.Name).ReadWrite()
	led := map[string]bool{}
	for i := range present {
		if s := &present[i]; resources.LeadsToPrimary(s) {
			led[resources.RoutedTo(s)] = true
		}
	}
	if i := slices.IndexFunc(present, func(s corev1.Service) bool { return s.Name == name }); i >= 0 && len(led) == 1 {
		return resources.RoutedTo(&present[i]), nil
	}
	var rw corev1.Service
	err := p.live.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: name}, &rw)
	return resources.RoutedTo(&rw), client.IgnoreNotFound(err)
}

// services applies them all, whatever becomes of one: what a user says of one Service
// must not keep another from leading to the primary, nor the very one that the API server
// refuses for it.
func (p *prerequisites) services(ctx context.Context, c *v1alpha1.Cluster, wanted []*corev1.Service) error {
	var errs []error
	for _, s := range wanted {
		err := p.apply(ctx, c, s)
		if isRefusedAsItIs(err) {
			err = errors.Join(err, p.lead(ctx, c, s))
		}
		if err != nil && c.Spec.Managed != nil {
			err = fmt.Errorf("%w (see spec.managed.services)", err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// isRefusedAsItIs: the API server, a policy or a webhook takes no such object, however often it is
// asked. A conflict, a timeout or a server that is busy may be another matter the next time.
func isRefusedAsItIs(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err)
}

// lead has a Service that is there select whom it is to select, and changes nothing else of it. The
// selector is then an update's, by the field manager that applies: the next whole apply, which
// forces, finds no conflict, and takes it over.
func (p *prerequisites) lead(ctx context.Context, c *v1alpha1.Cluster, wanted *corev1.Service) error {
	found, err := p.mine(ctx, c, wanted, wanted.Name)
	if found == nil || err != nil {
		return err
	}
	is := found.(*corev1.Service)
	if maps.Equal(is.Spec.Selector, wanted.Spec.Selector) {
		return nil
	}
	before := is.DeepCopy()
	before.UID = "" // so that the patch has it: another Service of that name is refused
	patch := client.MergeFrom(before)
	is.Spec.Selector = wanted.Spec.Selector
	if err := p.client.Patch(ctx, is, patch, client.FieldOwner(resources.FieldManager)); err != nil {
		return fmt.Errorf("lead the Service %s to whom it is to lead: %w", is.Name, err)
	}
	return nil
}

// prune deletes the Services that lead to roles and are not wanted.
func (p *prerequisites) prune(ctx context.Context, c *v1alpha1.Cluster, present []corev1.Service) error {
	wanted := resources.Services(c, "")
	var errs []error
	for i := range present {
		s := &present[i]
		isWanted := slices.ContainsFunc(wanted, func(w *corev1.Service) bool { return w.Name == s.Name })
		if !isWanted && metav1.IsControlledBy(s, c) {
			errs = append(errs, client.IgnoreNotFound(p.client.Delete(ctx, s, client.Preconditions{UID: &s.UID})))
		}
	}
	return errors.Join(errs...)
}
