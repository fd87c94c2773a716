package operator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

// prerequisites keeps what a cluster needs besides Pods and volumes: Secrets,
// certificates, Services, access rights, the disruption budget.
type prerequisites struct {
	applier

	authorities authorities

	mu     sync.Mutex
	users  map[types.NamespacedName]userSecret // by Cluster: of the application
	stores map[types.NamespacedName]userSecret // by Cluster: the files of the archive's store
	behind map[types.UID]notYet                // the volumes that have not grown yet, by claim

	attempts    attempts
	growths     *refusedGrowths
	podMonitors podMonitors
}

func newPrerequisites(cached client.Client, live client.Reader) *prerequisites {
	return &prerequisites{applier: applier{client: cached, live: live},
		users: map[types.NamespacedName]userSecret{}, stores: map[types.NamespacedName]userSecret{},
		growths: newRefusedGrowths(), behind: map[types.UID]notYet{},
		podMonitors: podMonitors{of: map[types.NamespacedName]podMonitor{}}}
}

// forget drops what is remembered of a Cluster.
func (p *prerequisites) forget(cluster types.NamespacedName) {
	p.settled.forget(cluster)
	p.attempts.forget(cluster)
	p.authorities.forget(cluster)
	p.growths.forget(cluster)
	p.podMonitors.forget(cluster)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.users, cluster)
	delete(p.stores, cluster)
	p.forgetBehind(cluster)
}

// userError is something that the user has to mend.
type userError struct{ core.Problem }

func (e *userError) Error() string { return e.String() }

// ensure makes or mends all of them, each whatever becomes of the others; the error tells of all that
// failed. asides are what only the user can mend, and can do later. The authority is there
// with an error, too, if its Secret can be read: without it no instance is heard.
func (p *prerequisites) ensure(ctx context.Context, c *v1alpha1.Cluster) (ca *pki.CA, asides []core.Problem,
	err error) {
	ca, err = p.authority(ctx, c, &asides)
	signs := ca
	var broken *userError
	if errors.As(err, &broken) {
		signs = nil
	} else if ca != nil && ca.EndsSoon(time.Now()) {
		asides = append(asides, authorityEnds(c, ca))
	}
	archive := func(ctx context.Context, c *v1alpha1.Cluster) error { return p.archive(ctx, c, &asides) }
	monitor := func(ctx context.Context, c *v1alpha1.Cluster) error { return p.podMonitor(ctx, c, &asides) }
	list := append(p.accounts(signs, &asides), attempt{"recovery", p.recovery}, attempt{"archive", archive},
		attempt{"budget", p.budget}, attempt{attemptLease, p.lease}, attempt{"services", p.defaultServices})
	for _, name := range c.Status.InstanceNames {
		list = append(list, p.ofInstance(signs, name)...)
	}
	beside := []attempt{{"left over", p.leftOvers}, {"monitor", monitor}} // the Cluster is whole without
	p.attempts.keepOnly(client.ObjectKeyFromObject(c), slices.Concat(list, beside))
	err = together(err, p.attempts.all(ctx, c, list, &asides))
	asides = append(asides, p.notGrown(ctx, c)...)
	if stays := p.attempts.all(ctx, c, beside, &asides); stays != nil {
		asides = append(asides, core.Problem{Reason: core.ReasonActionFailed,
			Message: "could not remove what is not needed any more: " + stays.Error()})
	}
	return ca, slices.Compact(asides), err
}

// instance makes or mends what one instance needs.
func (p *prerequisites) instance(ctx context.Context, c *v1alpha1.Cluster, ca *pki.CA, instance string) error {
	return p.attempts.all(ctx, c, p.ofInstance(ca, instance), new([]core.Problem))
}

// ofInstance is what one instance needs; a certificate only where there is an authority that signs it.
func (p *prerequisites) ofInstance(signs *pki.CA, instance string) []attempt {
	list := []attempt{
		{"account of " + instance, func(ctx context.Context, c *v1alpha1.Cluster) error {
			return p.apply(ctx, c, resources.ServiceAccount(c, instance))
		}},
		{"rights of " + instance, func(ctx context.Context, c *v1alpha1.Cluster) error {
			if err := p.apply(ctx, c, resources.Role(c, instance)); err != nil {
				return err // it is what the other gives
			}
			return p.apply(ctx, c, resources.RoleBinding(c, instance))
		}},
		{"service of " + instance, func(ctx context.Context, c *v1alpha1.Cluster) error {
			return p.apply(ctx, c, resources.InstanceService(c, instance))
		}},
		{"claim of " + instance, func(ctx context.Context, c *v1alpha1.Cluster) error {
			return p.claim(ctx, c, instance)
		}},
		{"pod of " + instance, func(ctx context.Context, c *v1alpha1.Cluster) error {
			return p.pod(ctx, c, instance)
		}},
	}
	if signs == nil {
		return list
	}
	return append(list, attempt{"certificate of " + instance, func(ctx context.Context, c *v1alpha1.Cluster) error {
		return p.leaf(ctx, c, signs, instance)
	}})
}

// budget keeps the disruption budget, or removes it where the user wants none.
func (p *prerequisites) budget(ctx context.Context, c *v1alpha1.Cluster) error {
	if pdb := resources.DisruptionBudget(c); pdb != nil {
		return p.apply(ctx, c, pdb)
	}
	return p.drop(ctx, c, &policyv1.PodDisruptionBudget{}, resources.Names(c.Name).DisruptionBudget())
}

// drop removes an object of the Cluster's that is not wanted any more. It looks in the cache, for
// it is asked at each look, and what is not there costs no request.
func (p *prerequisites) drop(ctx context.Context, c *v1alpha1.Cluster, obj client.Object, name string) error {
	err := p.client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, obj)
	if err != nil || !resources.Belongs(c, obj) {
		return client.IgnoreNotFound(err)
	}
	uid := obj.GetUID()
	return client.IgnoreNotFound(p.client.Delete(ctx, obj, client.Preconditions{UID: &uid}))
}

// pod and claim refuse a Pod or a claim of the instance's name that is somebody else's: it would stand
// in the way, or be mounted. Those of the instance are given what they inherit.
func (p *prerequisites) pod(ctx context.Context, c *v1alpha1.Cluster, instance string) error {
	found, err := p.mine(ctx, c, &corev1.Pod{}, instance)
	if err != nil || found == nil {
		return err
	}
	return together(p.inherit(ctx, c, found), p.label(ctx, c, found))
}

func (p *prerequisites) claim(ctx context.Context, c *v1alpha1.Cluster, instance string) error {
	found, err := p.mine(ctx, c, &corev1.PersistentVolumeClaim{}, instance)
	if err != nil || found == nil {
		return err
	}
	return together(p.inherit(ctx, c, found), p.label(ctx, c, found))
}

// label puts back the labels by which the operator knows a Pod or a claim, where somebody took them off.
func (p *prerequisites) label(ctx context.Context, c *v1alpha1.Cluster, obj client.Object) error {
	lacks := resources.LackedLabels(c, obj)
	if obj.GetDeletionTimestamp() != nil || lacks == nil {
		return nil
	}
	_, err := patchMeta(ctx, p.client, obj, client.ObjectKeyFromObject(obj), obj.GetUID(), lacks)
	return err
}

// inherit puts on an object that was made earlier what spec.inheritedMetadata says by now. What
// it says no longer stays there until the object is recreated.
func (p *prerequisites) inherit(ctx context.Context, c *v1alpha1.Cluster, obj client.Object) error {
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	lacks := resources.LackedOfInherited(c, obj)
	if lacks == nil {
		return nil
	}
	_, err := patchMeta(ctx, p.client, obj, client.ObjectKeyFromObject(obj), obj.GetUID(), lacks)
	return err
}

func (p *prerequisites) leaf(ctx context.Context, c *v1alpha1.Cluster, ca *pki.CA, instance string) error {
	leaf := pki.InstanceLeaf(instance, c.Namespace, resources.ServiceNames(c, instance)...)
	if also := c.Spec.Certificates; also != nil {
		leaf.Add(also.ServerAltDNSNames...)
	}
	return p.secret(ctx, c, resources.TLSSecret(instance), func(data map[string][]byte) (*corev1.Secret, error) {
		bundle, err := ca.Keep(resources.BundleOf(data), leaf, time.Now())
		if err != nil {
			return nil, fmt.Errorf("issue the certificate of %s: %w", instance, err)
		}
		return resources.InstanceTLSSecret(c, instance, bundle), nil
	})
}

// accounts are the Secrets of the accounts. asides are why a Secret of the user's is not followed
// any more by a cluster that has its account. That of the application has the authority in it.
func (p *prerequisites) accounts(authority *pki.CA, asides *[]core.Problem) []attempt {
	list := []attempt{
		{"root", func(ctx context.Context, c *v1alpha1.Cluster) error {
			return p.account(ctx, c, resources.Names(c.Name).RootSecret(), resources.RootSecret, asides)
		}},
		{"replication", func(ctx context.Context, c *v1alpha1.Cluster) error {
			return p.account(ctx, c, resources.Names(c.Name).ReplicationSecret(), resources.ReplicationSecret, asides)
		}},
		{"control", func(ctx context.Context, c *v1alpha1.Cluster) error {
			return p.account(ctx, c, resources.Names(c.Name).ControlSecret(), resources.ControlSecret, asides)
		}},
	}
	return append(list, attempt{"application", func(ctx context.Context, c *v1alpha1.Cluster) error {
		if err := namesItsOwn(c); err != nil {
			return err
		}
		var user []core.Problem
		var trusted []byte
		if authority != nil {
			trusted = authority.Trust()
		}
		build := p.appSecret(ctx, trusted, &user)
		err := p.account(ctx, c, resources.Names(c.Name).AppSecret(), build, asides)
		*asides = append(*asides, user...)
		return err
	}})
}

// accountBuilder makes the Secret of an account from the data that it has.
type accountBuilder func(*v1alpha1.Cluster, map[string][]byte, io.Reader) (*corev1.Secret, error)

func (p *prerequisites) account(ctx context.Context, c *v1alpha1.Cluster, name string, build accountBuilder,
	asides *[]core.Problem) error {
	unusable := ""
	err := p.secret(ctx, c, name, func(data map[string][]byte) (*corev1.Secret, error) {
		unusable = resources.UnusablePassword(c, name, data)
		return build(c, data, rand.Reader)
	})
	if err == nil && unusable != "" {
		*asides = append(*asides, core.Problem{Reason: core.ProblemSecretIncomplete,
			Message: unusable + "; until then the account keeps the password that it has"})
	}
	return err
}

// secret keeps one of the cluster's own Secrets, made from the data that it has, nil when
// there is none.
func (p *prerequisites) secret(ctx context.Context, c *v1alpha1.Cluster, name string,
	made func(data map[string][]byte) (*corev1.Secret, error)) error {
	return p.keep(ctx, c, &corev1.Secret{}, name, func(found client.Object) (client.Object, error) {
		var data map[string][]byte
		if is, found := found.(*corev1.Secret); found {
			data = is.Data
		}
		return made(data)
	})
}
