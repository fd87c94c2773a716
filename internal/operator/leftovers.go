package operator

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// leftOvers removes what is left of instances that there are no more: their removal was cut short, or somebody has
// deleted the Pod and the claim by hand.
func (p *prerequisites) leftOvers(ctx context.Context, c *v1alpha1.Cluster) error {
	var services corev1.ServiceList
	if err := p.client.List(ctx, &services, those(c)); err != nil {
		return err
	}
	var errs []error
	for i := range services.Items {
		s := &services.Items[i]
		_, isInstances := resources.Ordinal(c.Name, s.Name)
		if !isInstances || resources.IsRoleService(s) || !resources.Belongs(c, s) || s.DeletionTimestamp != nil ||
			slices.Contains(c.Status.InstanceNames, s.Name) {
			continue
		}
		isGone, err := p.isGone(ctx, c, s.Name)
		if err == nil && isGone {
			err = p.removeRest(ctx, c, s.Name)
		}
		errs = append(errs, err)
	}
	return together(errs...)
}

// isGone reports whether, by the API server's word, an instance has neither a Pod nor a claim, and the status does not
// name it: whoever looks may see less than was made already.
func (p *prerequisites) isGone(ctx context.Context, c *v1alpha1.Cluster, instance string) (bool, error) {
	pod, err := p.mineNow(ctx, c, &corev1.Pod{}, instance)
	if pod != nil || unlessTaken(err) != nil {
		return false, unlessTaken(err)
	}
	claim, err := p.mineNow(ctx, c, &corev1.PersistentVolumeClaim{}, instance)
	if claim != nil && !resources.IsKept(claim) || unlessTaken(err) != nil {
		return false, unlessTaken(err)
	}
	now, err := find(ctx, p.live, &v1alpha1.Cluster{}, client.ObjectKeyFromObject(c))
	if now == nil || err != nil {
		return false, err
	}
	return now.UID == c.UID && !slices.Contains(now.Status.InstanceNames, instance), nil
}

// unlessTaken is an error, unless it says that there is an object which is somebody else's.
func unlessTaken(err error) error {
	var taken *nameTakenError
	if errors.As(err, &taken) {
		return nil
	}
	return err
}

// removeRest removes what an instance has besides its Pod and its claim. Its Service goes last: leftOvers finds by it
// what is left when this is cut short.
func (p *prerequisites) removeRest(ctx context.Context, c *v1alpha1.Cluster, instance string) error {
	errs := []error{p.remove(ctx, c, &corev1.Secret{}, resources.TLSSecret(instance))}
	for _, kind := range []client.Object{&rbacv1.RoleBinding{}, &rbacv1.Role{}, &corev1.ServiceAccount{}} {
		errs = append(errs, p.remove(ctx, c, kind, instance))
	}
	if err := together(errs...); err != nil {
		return err
	}
	return p.remove(ctx, c, &corev1.Service{}, instance)
}

// remove deletes an object that is seen to be this Cluster's, and that very one.
func (p *prerequisites) remove(ctx context.Context, c *v1alpha1.Cluster, kind client.Object, name string) error {
	obj, err := p.mine(ctx, c, kind, name)
	if obj == nil || err != nil {
		return unlessTaken(err)
	}
	_, err = deleteThis(ctx, p.client, obj, obj.GetUID())
	return err
}
