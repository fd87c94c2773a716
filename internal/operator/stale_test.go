package operator

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

// behind reads what was there at a moment, and writes to what is there now, as a client whose
// watch lags.
type behind struct {
	client.Client
	then client.Reader
	// before is called before the first apply.
	before sync.Once
	made   func()
}

func (b *behind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	return b.then.Get(ctx, key, obj, o...)
}

func (b *behind) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	return b.then.List(ctx, list, o...)
}

func (b *behind) Apply(ctx context.Context, obj runtime.ApplyConfiguration, o ...client.ApplyOption) error {
	if b.made != nil {
		b.before.Do(b.made)
	}
	return b.Client.Apply(ctx, obj, o...)
}

// lagging is an operator whose caches have what is there now, and get nothing new.
func lagging(t *testing.T, server client.Client) (*prerequisites, *behind) {
	t.Helper()
	var objs []client.Object
	for _, list := range []client.ObjectList{&corev1.ServiceList{}, &corev1.SecretList{},
		&corev1.PersistentVolumeClaimList{}} {
		must(t, server.List(t.Context(), list))
		must(t, meta.EachListItem(list, func(o runtime.Object) error {
			objs = append(objs, o.DeepCopyObject().(client.Object))
			return nil
		}))
	}
	b := &behind{Client: server, then: newFake(t).WithReturnManagedFields().WithObjects(objs...).Build()}
	return newPrerequisites(b, server), b
}

// changed is the Cluster with something that every object inherits: all of them are applied again.
func changed(c *v1alpha1.Cluster) *v1alpha1.Cluster {
	c = c.DeepCopy()
	c.Generation++
	c.Spec.InheritedMetadata = &v1alpha1.InheritedMetadata{Labels: map[string]v1alpha1.LabelValue{"team": "a"}}
	return c
}

// secretOf is one of a cluster's Secrets as it is now.
func secretOf(t *testing.T, server client.Client, c *v1alpha1.Cluster, name string) *corev1.Secret {
	t.Helper()
	var s corev1.Secret
	must(t, server.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: name}, &s))
	return &s
}

// replace is what a user does to a Secret.
func replace(t *testing.T, server client.Client, s *corev1.Secret, data map[string][]byte) {
	t.Helper()
	for key, value := range data {
		s.Data[key] = value
	}
	must(t, server.Update(t.Context(), s, client.FieldOwner("kubectl")))
}

// staleCases are what others may do of which the operator's cache does not know yet; each has the
// operator's objects made, changes one behind its back, has them all applied again, and looks.
var staleCases = map[string]func(*testing.T, client.Client, *v1alpha1.Cluster){
	"a password is changed":     aPasswordIsChanged,
	"a Secret is deleted":       aSecretIsDeleted,
	"the authority is replaced": theAuthorityIsReplaced,
	"a Secret is restored":      aSecretIsRestored,
	"writes are led to another": writesAreLedToAnother,
}

func keepAccounts(t *testing.T, p *prerequisites, c *v1alpha1.Cluster) {
	t.Helper()
	asides := new([]core.Problem)
	must(t, p.attempts.all(t.Context(), c, p.accounts(anAuthority(t), asides), asides))
}

func aPasswordIsChanged(t *testing.T, server client.Client, c *v1alpha1.Cluster) {
	keepAccounts(t, newPrerequisites(server, server), c)
	p, _ := lagging(t, server)
	names := resources.Names(c.Name)
	all := []string{names.RootSecret(), names.ReplicationSecret(), names.ControlSecret(), names.AppSecret()}
	for _, name := range all {
		replace(t, server, secretOf(t, server, c, name), map[string][]byte{resources.KeyPassword: []byte("new")})
	}
	keepAccounts(t, p, changed(c))
	for _, name := range all {
		s := secretOf(t, server, c, name)
		if string(s.Data[resources.KeyPassword]) != "new" || s.Labels["team"] != "a" {
			t.Errorf("%s: the password is %q, and the labels are %v", name, s.Data[resources.KeyPassword], s.Labels)
		}
	}
}

// aSecretIsDeleted by whoever wants another password.
func aSecretIsDeleted(t *testing.T, server client.Client, c *v1alpha1.Cluster) {
	keepAccounts(t, newPrerequisites(server, server), c)
	p, _ := lagging(t, server)
	s := secretOf(t, server, c, resources.Names(c.Name).RootSecret())
	must(t, server.Delete(t.Context(), s))
	keepAccounts(t, p, changed(c))
	now := secretOf(t, server, c, s.Name).Data[resources.KeyPassword]
	if len(now) == 0 || string(now) == string(s.Data[resources.KeyPassword]) {
		t.Errorf("the password that was thrown away is %q, and the new one %q", s.Data[resources.KeyPassword], now)
	}
}

func theAuthorityIsReplaced(t *testing.T, server client.Client, c *v1alpha1.Cluster) {
	before := newPrerequisites(server, server)
	ca, err := before.authority(t.Context(), c, new([]core.Problem))
	must(t, err)
	must(t, before.leaf(t.Context(), c, ca, c.Name+"-1"))
	p, _ := lagging(t, server)
	bundle, err := pki.NewCA(c.Name, time.Now())
	must(t, err)
	theirs, err := pki.ParseCA(bundle)
	must(t, err)
	leaf := pki.InstanceLeaf(c.Name+"-1", c.Namespace, resources.ServiceNames(c, c.Name+"-1")...)
	cert, err := theirs.Issue(leaf, time.Now())
	must(t, err)
	for name, b := range map[string]pki.Bundle{resources.Names(c.Name).CASecret(): bundle,
		resources.TLSSecret(c.Name + "-1"): cert} {
		replace(t, server, secretOf(t, server, c, name), map[string][]byte{resources.KeyCA: b.CA,
			resources.KeyCert: b.Cert, resources.KeyKey: b.Key})
	}
	ca, err = p.authority(t.Context(), changed(c), new([]core.Problem))
	must(t, err)
	if string(ca.Trust()) != string(theirs.Trust()) {
		t.Error("the operator goes on with the authority that was replaced")
	}
	must(t, p.leaf(t.Context(), changed(c), ca, c.Name+"-1"))
	for name, b := range map[string]pki.Bundle{resources.Names(c.Name).CASecret(): bundle,
		resources.TLSSecret(c.Name + "-1"): cert} {
		if string(secretOf(t, server, c, name).Data[resources.KeyKey]) != string(b.Key) {
			t.Errorf("%s: what was there before is back", name)
		}
	}
}

// aSecretIsRestored in the moment after none was found.
func aSecretIsRestored(t *testing.T, server client.Client, c *v1alpha1.Cluster) {
	p, lag := lagging(t, server)
	s, err := resources.RootSecret(c, map[string][]byte{resources.KeyPassword: []byte("restored")}, nil)
	must(t, err)
	lag.made = func() { must(t, server.Create(t.Context(), s, client.FieldOwner("kubectl"))) }
	must(t, p.secret(t.Context(), c, s.Name, func(data map[string][]byte) (*corev1.Secret, error) {
		if data == nil {
			data = map[string][]byte{resources.KeyPassword: []byte("made")}
		}
		return resources.RootSecret(c, data, nil)
	}))
	if got := secretOf(t, server, c, s.Name).Data[resources.KeyPassword]; string(got) != "restored" {
		t.Errorf("the password is %q", got)
	}
}

// writesAreLedToAnother by a failover.
func writesAreLedToAnother(t *testing.T, server client.Client, c *v1alpha1.Cluster) {
	c.Spec.Managed = &v1alpha1.ManagedSpec{Services: &v1alpha1.ManagedServices{
		Additional: []v1alpha1.AdditionalService{forWrites}}}
	before := newPrerequisites(server, server)
	must(t, before.routeWrites(t.Context(), c, c.Name+"-1"))
	p, _ := lagging(t, server)
	keep(t, p, c)
	p, _ = lagging(t, server)
	must(t, before.routeWrites(t.Context(), c, c.Name+"-2"))
	c = changed(c)
	c.Spec.Managed.Services.Additional = append(c.Spec.Managed.Services.Additional,
		v1alpha1.AdditionalService{Name: "later", SelectorType: v1alpha1.SelectReadWrite})
	keep(t, p, c)
	for _, name := range []string{"rw", "orders", "later"} {
		var s corev1.Service
		must(t, server.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: c.Name + "-" + name}, &s))
		if got := resources.RoutedTo(&s); got != c.Name+"-2" || s.Labels["team"] != "a" {
			t.Errorf("-%s leads to %q, and has the labels %v", name, got, s.Labels)
		}
	}
}

// What the operator repeats of an object, and what it makes where there is none, never replaces
// what its cache does not have yet.
func TestWhatTheCacheDoesNotHaveYetIsKept(t *testing.T) {
	for name, play := range staleCases {
		t.Run(name, func(t *testing.T) { play(t, newAPI(t), aCluster()) })
	}
}

// The same, for a fake knows little of versions, UIDs and owners of fields. CNMSQL_KUBE_BIN names
// a directory with etcd and kube-apiserver.
func TestARealAPIServerKeepsWhatTheCacheDoesNotHaveYet(t *testing.T) {
	server := realAPIServer(t)
	cluster := 0
	for name, play := range staleCases {
		t.Run(name, func(t *testing.T) {
			c := aNewCluster()
			c.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "c" + string(rune('a'+cluster))}
			cluster++
			must(t, server.Create(t.Context(), c))
			play(t, server, c)
		})
	}
}

// A user enlarges a claim by hand to more than the spec says by now. A smaller request may be taken:
// Kubernetes lets a growth be taken back that has not ended.
func TestAClaimOfWhichMoreIsAskedIsNotMadeSmaller(t *testing.T) {
	server, c := newAPI(t), aCluster()
	claim, err := resources.VolumeClaim(c, "c-1", 1)
	must(t, err)
	must(t, server.Create(t.Context(), claim))
	p, cached := lagging(t, server)
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("9Gi")
	must(t, server.Update(t.Context(), claim))
	grow := core.GrowVolume{Instance: claim.Name, VolumeUID: string(claim.UID), To: "5Gi"}
	done := (&actor{client: cached, live: server, prerequisites: p}).act(t.Context(), c, nil, []core.Effect{grow})
	if done.err() != nil || len(done.conflicts) > 0 || server.patches != 1 {
		t.Errorf("a claim that is another by now is asked %d times, and told as one that is refused: %+v",
			server.patches, done)
	}
	must(t, server.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	if got := claim.Spec.Resources.Requests[corev1.ResourceStorage]; got.String() != "9Gi" {
		t.Errorf("9Gi were asked for, and it is %s", got.String())
	}
}
