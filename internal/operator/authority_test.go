package operator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

// authorityWorld is a Cluster of two instances whose Pods run, with all that the operator has made of it.
type authorityWorld struct {
	*testing.T
	server client.Client
	c      *v1alpha1.Cluster
	p      *prerequisites
	// refused is what the API server does not write, unread what it does not tell of: by the end of its name.
	refused, unread string
	// said are the notices of the last look, and the problem it had.
	said []core.Problem
	ca   *pki.CA
}

func newAuthorityWorld(t *testing.T, mode string) *authorityWorld {
	t.Helper()
	w := &authorityWorld{T: t, c: aCluster()}
	w.c.Spec.Replication.Mode = mode
	w.server = newFake(t).WithReturnManagedFields().WithObjects(w.c).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, in client.WithWatch, key client.ObjectKey, obj client.Object,
			o ...client.GetOption) error {
			if w.unread != "" && strings.HasSuffix(key.Name, w.unread) {
				return errors.New("the API server does not answer for " + key.Name)
			}
			return in.Get(ctx, key, obj, o...)
		},
		Apply: func(ctx context.Context, in client.WithWatch, obj runtime.ApplyConfiguration,
			o ...client.ApplyOption) error {
			if name := obj.(interface{ GetName() string }).GetName(); w.refused != "" && name == w.refused {
				return errors.New("a webhook refuses " + name)
			}
			return in.Apply(ctx, obj, o...)
		}}).Build()
	must(t, w.server.Get(t.Context(), clusterKey, w.c))
	long := metav1.NewMicroTime(time.Now().Add(-time.Hour))
	w.c.Status.EstablishedAt, w.c.Status.InstanceNames = &long, []string{"c-1", "c-2"}
	w.restart()
	w.look()
	if len(w.said) > 0 {
		t.Fatalf("a cluster that is made says %v", w.said)
	}
	for _, name := range w.c.Status.InstanceNames {
		pod := aPod(name, "of-"+name, "n1")
		pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
		must(t, w.server.Create(t.Context(), pod))
	}
	return w
}

// restart has another operator look, which knows nothing but what the API server tells it.
func (w *authorityWorld) restart() { w.p = newPrerequisites(w.server, w.server) }

func (w *authorityWorld) look() {
	w.Helper()
	var err error
	w.ca, w.said, err = w.p.ensure(w.Context(), w.c)
	if err != nil {
		w.said = append(w.said, *problemFrom(err))
	}
}

func (w *authorityWorld) says(reasons ...core.Reason) {
	w.Helper()
	var said []core.Reason
	for _, p := range w.said {
		said = append(said, p.Reason)
	}
	if !slices.Equal(said, reasons) {
		w.Fatalf("it says %v, and not %v", w.said, reasons)
	}
}

func (w *authorityWorld) authority() *corev1.Secret {
	w.Helper()
	return secretOf(w.T, w.server, w.c, "c-ca")
}

func (w *authorityWorld) leaf(instance string) pki.Bundle {
	w.Helper()
	return resources.BundleOf(secretOf(w.T, w.server, w.c, resources.TLSSecret(instance)).Data)
}

func (w *authorityWorld) deletes(names ...string) {
	w.Helper()
	for _, name := range names {
		must(w.T, w.server.Delete(w.Context(), secretOf(w.T, w.server, w.c, name)))
	}
}

// recreates has Pods made anew, which begin with what their Secrets hold.
func (w *authorityWorld) recreates(instances ...string) {
	w.Helper()
	for i, name := range instances {
		var pod corev1.Pod
		must(w.T, w.server.Get(w.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &pod))
		must(w.T, w.server.Delete(w.Context(), &pod))
		anew := aPod(name, "anew", "n1")
		anew.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Duration(i+1) * time.Minute))
		must(w.T, w.server.Create(w.Context(), anew))
	}
}

// joins fails the test if a member that reads its files now is not admitted by who joined with those of before.
func (w *authorityWorld) joins(what string, before map[string]pki.Bundle) {
	w.Helper()
	for one, shown := range before {
		for other := range before {
			how, err := pki.Succeeds(shown, w.leaf(other), time.Now())
			if err != nil || how == pki.Severed {
				w.Errorf("%s: %s, which runs, and %s do not trust each other any more: %v", what, one, other, err)
			}
		}
	}
}

func (w *authorityWorld) leaves() map[string]pki.Bundle {
	return map[string]pki.Bundle{"c-1": w.leaf("c-1"), "c-2": w.leaf("c-2")}
}

func (w *authorityWorld) asks() {
	w.Helper()
	w.c.Annotations = map[string]string{v1alpha1.AnnotationNewAuthority: "now"}
	must(w.T, w.server.Update(w.Context(), w.c))
}

func inBothTopologies(t *testing.T, do func(*authorityWorld)) {
	for _, mode := range []string{v1alpha1.ReplicationAsync, v1alpha1.ReplicationGroup} {
		t.Run(mode, func(t *testing.T) { do(newAuthorityWorld(t, mode)) })
	}
}

// TestADeletedAuthorityIsPutBack as it was, by the operator that knew it, though it is refused at first: it leads the
// cluster on meanwhile.
func TestADeletedAuthorityIsPutBack(t *testing.T) {
	inBothTopologies(t, func(w *authorityWorld) {
		was, leaves, knows := w.authority(), w.leaves(), w.ca
		w.deletes("c-ca")
		w.refused = "c-ca"
		w.look()
		w.says(core.ProblemPrerequisites)
		if w.ca == nil || string(w.ca.Trust()) != string(knows.Trust()) {
			w.Fatal("it has no authority any more, and leads nobody")
		}
		w.refused = ""
		w.look()
		w.says(core.ProblemAuthorityRestored)
		for key, value := range was.Data {
			if string(w.authority().Data[key]) != string(value) {
				w.Errorf("%s is another", key)
			}
		}
		for name, leaf := range leaves {
			if string(w.leaf(name).Cert) != string(leaf.Cert) {
				w.Errorf("%s has another certificate", name)
			}
		}
	})
}

// TestALostAuthoritySeversNobody holds that members join at each step on the way to another authority, where no
// operator knew the former: whichever operator takes the step, and none is taken before all are ready.
func TestALostAuthoritySeversNobody(t *testing.T) {
	inBothTopologies(t, func(w *authorityWorld) {
		awaits := core.ProblemAuthorityAwaits
		if w.c.Spec.Replication.Mode == v1alpha1.ReplicationAsync {
			awaits = core.ProblemAuthorityChanges
		}
		old, joined := w.authority(), w.leaves()
		w.deletes("c-ca")
		w.restart()
		w.look()
		w.says(awaits)
		w.joins("another is trusted", joined)
		if string(w.leaf("c-1").Cert) != string(joined["c-1"].Cert) {
			w.Error("its certificate is another already")
		}
		trusted := w.leaves()
		for _, ready := range [][]string{nil, {"c-1"}} {
			w.recreates(ready...)
			w.restart() // in the middle
			w.look()
			w.says(awaits)
			if string(w.leaf("c-1").Cert) != string(joined["c-1"].Cert) {
				w.Fatalf("with %v ready its certificate is another", ready)
			}
		}
		w.recreates("c-2")
		w.refused = "c-2-tls"
		w.look()
		w.joins("some show the new one", trusted)
		w.refused = ""
		w.look()
		w.says(awaits)
		w.joins("all show the new one", trusted)
		shown := w.leaves()
		if string(shown["c-2"].Cert) == string(trusted["c-2"].Cert) {
			w.Fatal("nobody is given a certificate of the new one")
		}
		w.recreates("c-1", "c-2")
		w.look()
		w.look()
		w.says()
		w.joins("the lost one is not trusted any more", shown)
		if now := w.authority().Data; strings.Contains(string(now[resources.KeyCA]),
			string(old.Data[resources.KeyCert])) || len(now) != 3 {
			w.Errorf("the lost one is still there: %v", now)
		}
	})
}

// TestALostAuthorityIsReplacedOnceTheInstancesAreKnown holds that what cannot be read is not missing.
func TestALostAuthorityIsReplacedOnceTheInstancesAreKnown(t *testing.T) {
	inBothTopologies(t, func(w *authorityWorld) {
		joined := w.leaves()
		w.deletes("c-ca")
		w.restart()
		w.unread = "c-2-tls"
		w.look()
		w.says(core.ProblemPrerequisites)
		var s corev1.Secret
		key := client.ObjectKey{Namespace: "ns", Name: "c-ca"}
		if err := w.server.Get(w.Context(), key, &s); err == nil || w.ca != nil {
			w.Fatal("another is made, though one Secret could not be read")
		}
		w.unread = ""
		w.look()
		w.joins("another is trusted", joined)
	})
}

// TestNoAuthorityIsMadeOfWhichAGroupKnowsNothing, until somebody asks for it, or the Secret is back.
func TestNoAuthorityIsMadeOfWhichAGroupKnowsNothing(t *testing.T) {
	all := []string{"c-ca", "c-1-tls", "c-2-tls"}
	w := newAuthorityWorld(t, v1alpha1.ReplicationGroup)
	was := w.authority()
	w.deletes(all...)
	w.restart()
	w.look()
	w.says(core.ProblemAuthorityLost)
	var s corev1.Secret
	for _, name := range all {
		if w.server.Get(w.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &s) == nil {
			w.Errorf("%s is made", name)
		}
	}
	was.ResourceVersion = ""
	must(t, w.server.Create(t.Context(), was))
	w.look()
	w.says()
	if w.ca == nil || string(w.ca.Trust()) != string(was.Data[resources.KeyCA]) {
		t.Error("what was restored is not used")
	}
	w.deletes(all...)
	w.restart()
	w.asks()
	w.look()
	if w.says(); w.c.Annotations[v1alpha1.AnnotationNewAuthority] != "" {
		t.Error("the request stands")
	}
	w.leaves()
	async := newAuthorityWorld(t, v1alpha1.ReplicationAsync)
	async.deletes(all...)
	async.restart()
	async.look()
	async.says()
}

// TestALostAuthorityThatComesBackIsUsed puts the Secret of a backup over the one that was made.
func TestALostAuthorityThatComesBackIsUsed(t *testing.T) {
	inBothTopologies(t, func(w *authorityWorld) {
		was, joined := w.authority(), w.leaves()
		w.deletes("c-ca")
		w.restart()
		w.look()
		w.joins("another is trusted", joined)
		between := w.leaves()
		replace(w.T, w.server, w.authority(), was.Data)
		w.look()
		w.says()
		w.joins("the former is back", joined)
		w.joins("the former is back", between)
		if string(w.ca.Trust()) != string(was.Data[resources.KeyCA]) || len(w.authority().Data) != 3 {
			w.Error("what was restored is not used")
		}
	})
}

// TestAnotherAuthorityIsAskedFor holds that it signs once all trust it, and until then the former does. The request is
// taken back once, and by whichever operator.
func TestAnotherAuthorityIsAskedFor(t *testing.T) {
	inBothTopologies(t, func(w *authorityWorld) {
		joined := w.leaves()
		w.asks()
		w.refused = "c-ca"
		w.look()
		if w.ca == nil || w.c.Annotations[v1alpha1.AnnotationNewAuthority] == "" {
			w.Fatal("it is answered before it is written")
		}
		w.refused = ""
		w.restart()
		w.look()
		if w.c.Annotations[v1alpha1.AnnotationNewAuthority] != "" || len(w.said) != 1 {
			w.Fatalf("it says %v, and the request is %v", w.said, w.c.Annotations)
		}
		w.joins("another is trusted", joined)
		next, trusted := w.authority().Data["next.crt"], w.leaves()
		w.asks() // once more, and too early
		w.look()
		w.deletes("c-ca") // by mistake, meanwhile
		w.look()
		if string(w.authority().Data["next.crt"]) != string(next) {
			w.Fatal("another one comes next by now")
		}
		w.recreates("c-1", "c-2")
		w.look()
		w.joins("it signs", trusted)
		shown := w.leaves()
		if !pki.StaysGood(shown["c-1"], next, time.Now()) {
			w.Fatal("it does not sign")
		}
		w.recreates("c-1", "c-2")
		w.look()
		w.look()
		w.joins("it is alone", shown)
		if string(w.authority().Data[resources.KeyCA]) != string(next) {
			w.Error("the former one is still trusted")
		}
	})
}

// TestADamagedAuthorityIsReplacedWhenAskedFor, by the one that is known, which is trusted yet, or beside the lost one.
func TestADamagedAuthorityIsReplacedWhenAskedFor(t *testing.T) {
	inBothTopologies(t, func(w *authorityWorld) {
		for _, restarts := range []bool{false, true} {
			joined := w.leaves()
			replace(w.T, w.server, w.authority(), map[string][]byte{resources.KeyKey: []byte("garbage")})
			if restarts {
				w.restart()
			}
			w.look()
			if last := w.said[len(w.said)-1]; last.Reason != core.ProblemAuthorityBroken {
				w.Fatalf("it says %v", w.said)
			}
			w.asks()
			w.look()
			w.joins("it is replaced", joined)
			if _, err := resources.KeptOf(w.authority().Data).Parse(); err != nil {
				w.Error(err)
			}
		}
	})
}

// TestAnInstanceGoesByWhatItsSecretHeld when it joined, if it is a member; others read it again.
func TestAnInstanceGoesByWhatItsSecretHeld(t *testing.T) {
	w := newAuthorityWorld(t, v1alpha1.ReplicationGroup)
	k, secret := resources.KeptOf(w.authority().Data), secretOf(t, w.server, w.c, "c-1-tls")
	since := appliedAt(secret)
	if since.IsZero() {
		t.Fatal("it is not known since when the Secret is as it is")
	}
	for _, x := range []struct {
		born, after    time.Duration
		member, others bool
	}{{-time.Hour, time.Minute, false, false}, {-time.Hour, time.Hour, false, true},
		{time.Second, time.Minute, false, false}, {time.Minute, time.Minute, true, true}} {
		has := instanceNow{secret: secret, pod: aPod("c-1", "first", "n1")}
		has.pod.CreationTimestamp = metav1.NewTime(since.Add(x.born))
		at := since.Add(x.after)
		member, others := has.goesBy(k, true, at), has.goesBy(k, false, at)
		if member != x.member || others != x.others {
			t.Errorf("%+v: %t, %t", x, member, others)
		}
	}
}
