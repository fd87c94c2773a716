package operator

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

const (
	// brought is within what time a kubelet has brought a Secret to a Pod that runs, and who reads it again has: it
	// looks once a minute or so.
	brought = 5 * time.Minute
	// bornAfter is how much younger than a Secret a Pod has to be that was given it when it was made: both moments are
	// the API server's, of which there may be several.
	bornAfter = 5 * time.Second
	// restoredLife is for how long it is told that a deleted authority was put back.
	restoredLife = 10 * time.Minute
)

// authorities remembers what the Secret of each Cluster's authority held: who deletes it throws nothing away that
// its instances go by, as long as this operator runs.
type authorities struct {
	mu    sync.Mutex
	known map[types.NamespacedName]knownAuthority
}

type knownAuthority struct {
	uid  types.UID
	kept pki.Kept
	// restored is when it was put back last; zero if it never was.
	restored time.Time
}

// of is what is known of a Cluster's authority, nil if nothing is.
func (a *authorities) of(c *v1alpha1.Cluster) *pki.Kept {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.known[client.ObjectKeyFromObject(c)]; known.uid == c.UID && len(known.kept.Key) > 0 {
		return &known.kept
	}
	return nil
}

// restored is when the authority was put back last.
func (a *authorities) restored(c *v1alpha1.Cluster) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known[client.ObjectKeyFromObject(c)].restored
}

// note remembers what a look has found, or, once it is written, what it wanted.
func (a *authorities) note(c *v1alpha1.Cluster, look authorityLook, isWritten bool, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := client.ObjectKeyFromObject(c)
	known := a.known[key]
	if known.uid != c.UID {
		known = knownAuthority{uid: c.UID}
	}
	switch {
	case isWritten:
		known.kept = look.wanted
		if look.isGone && look.good != nil {
			known.restored = now
		}
	case look.good != nil:
		known.kept = *look.good
	default:
		return
	}
	if a.known == nil {
		a.known = map[types.NamespacedName]knownAuthority{}
	}
	a.known[key] = known
}

func (a *authorities) forget(cluster types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, cluster)
}

// shown is what the certificates in the Secrets of the instances are verified by, and whether any of them runs. It is
// asked of the API server, for what is not found is given up.
func (p *prerequisites) shown(ctx context.Context, c *v1alpha1.Cluster) (trust []byte, runs bool, err error) {
	for _, name := range c.Status.InstanceNames {
		has, err := p.nowOf(ctx, c, name)
		if err != nil {
			return nil, false, err
		}
		runs = runs || has.pod != nil
		if has.secret != nil {
			trust = append(trust, pki.Shown(resources.BundleOf(has.secret.Data), time.Now())...)
		}
	}
	return trust, runs, nil
}

// instanceNow is the Secret of an instance's certificate, and its Pod; nil is what it has not.
type instanceNow struct {
	secret *corev1.Secret
	pod    *corev1.Pod
}

func (p *prerequisites) nowOf(ctx context.Context, c *v1alpha1.Cluster, name string) (has instanceNow, err error) {
	found, err := find(ctx, p.live, &corev1.Secret{}, client.ObjectKey{Namespace: c.Namespace,
		Name: resources.TLSSecret(name)})
	if err != nil {
		return has, err
	}
	if found != nil && resources.Belongs(c, found) {
		has.secret = found
	}
	pod, err := find(ctx, p.live, &corev1.Pod{}, client.ObjectKey{Namespace: c.Namespace, Name: name})
	if err == nil && pod != nil && resources.Belongs(c, pod) && !observation.HasEnded(pod) {
		has.pod = pod
	}
	return has, err
}

// awaited are the instances that go, or may go, by something else than what their Secret holds by now, or whose
// Secret does not hold yet what it should: certificates of a former authority, and who is trusted.
func (p *prerequisites) awaited(ctx context.Context, c *v1alpha1.Cluster, k pki.Kept) (names []string, err error) {
	now := time.Now()
	for _, name := range c.Status.InstanceNames {
		has, err := p.nowOf(ctx, c, name)
		if err != nil {
			return nil, err
		}
		if has.pod != nil && !has.goesBy(k, declared.Topology(&c.Spec).RunsGroup(), now) {
			names = append(names, name)
		}
	}
	return names, nil
}

// goesBy reports whether the Pod goes by what its Secret holds, and whether that is what an authority gives. A member
// of a group reads it when it joins: its Pod has to be younger. Others read it when the kubelet has brought it.
func (has instanceNow) goesBy(k pki.Kept, isMember bool, now time.Time) bool {
	if has.secret == nil {
		return false
	}
	b := resources.BundleOf(has.secret.Data)
	isGiven := string(b.CA) == string(k.CA) && (len(k.Former) == 0 || pki.StaysGood(b, k.Cert, now))
	since := appliedAt(has.secret)
	if !isGiven || since.IsZero() {
		return false
	}
	return has.pod.CreationTimestamp.After(since.Add(bornAfter)) || !isMember && now.Sub(since) > brought
}

// appliedAt is when the operator has changed an object last, by the API server's word; zero if it does not say.
func appliedAt(obj metav1.Object) (at time.Time) {
	for _, m := range obj.GetManagedFields() {
		if m.Manager == resources.FieldManager && m.Operation == metav1.ManagedFieldsOperationApply && m.Time != nil &&
			m.Time.After(at) {
			at = m.Time.Time
		}
	}
	return at
}
