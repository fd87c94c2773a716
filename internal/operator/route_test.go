package operator

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// routeTo has writes led to an instance as after its promotion, and tells where they are led then.
func routeTo(t *testing.T, server client.Client, c *v1alpha1.Cluster, instance string) (to string, err error) {
	t.Helper()
	a := &actor{client: server, live: server, prerequisites: newPrerequisites(server, server)}
	done := a.act(quietly(t), c, nil, []core.Effect{core.RouteWrites{Instance: instance}})
	var rw corev1.Service
	must(t, server.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace,
		Name: resources.Names(c.Name).ReadWrite()}, &rw))
	return resources.RoutedTo(&rw), errors.Join(done.err(), errors.Join(done.conflicts...))
}

// Nothing that the API server refuses for good keeps clients from being led to the primary; what it
// may take the next time waits for that.
func TestARefusedServiceLeadsToThePrimaryAllTheSame(t *testing.T) {
	services, kind := schema.GroupResource{Resource: "services"}, schema.GroupKind{Kind: "Service"}
	for name, k := range map[string]struct {
		refusal error
		to      string
	}{
		"invalid":   {apierrors.NewInvalid(kind, "c-rw", nil), "c-2"},
		"forbidden": {apierrors.NewForbidden(services, "c-rw", errors.New("a policy")), "c-2"},
		"bad":       {apierrors.NewBadRequest("a webhook"), "c-2"},
		"conflict":  {apierrors.NewConflict(services, "c-rw", errors.New("by another")), "c-1"},
		"timeout":   {apierrors.NewTimeoutError("no answer", 1), "c-1"},
		"busy":      {apierrors.NewTooManyRequests("busy", 1), "c-1"},
	} {
		t.Run(name, func(t *testing.T) {
			var refusal error
			server := newFake(t).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
				Apply: func(ctx context.Context, w client.WithWatch, obj runtime.ApplyConfiguration,
					o ...client.ApplyOption) error {
					if refusal != nil {
						return refusal
					}
					return w.Apply(ctx, obj, o...)
				}}).Build()
			c := aCluster()
			if to, err := routeTo(t, server, c, "c-1"); err != nil || to != "c-1" {
				t.Fatalf("%q, %v", to, err)
			}
			refusal = k.refusal
			if to, err := routeTo(t, server, c, "c-2"); to != k.to || !errors.Is(err, refusal) {
				t.Errorf("writes are led to %q, and it is told: %v", to, err)
			}
			refusal = nil
			if to, err := routeTo(t, server, c, "c-2"); to != "c-2" || err != nil {
				t.Errorf("when nothing is refused any more, writes are led to %q: %v", to, err)
			}
		})
	}
}

// wants is an object, whatever was found.
func wants(obj client.Object) maker {
	return func(client.Object) (client.Object, error) { return obj, nil }
}

func TestAServiceOfSomebodyElseIsLedNowhere(t *testing.T) {
	c := aCluster()
	theirs := resources.ReadWriteService(c, "c-1")
	theirs.OwnerReferences = nil
	server := newAPI(t, theirs)
	var taken *nameTakenError
	p := newPrerequisites(server, server)
	if err := p.lead(t.Context(), c, "c-rw", wants(resources.ReadWriteService(c, "c-2"))); !errors.As(err, &taken) {
		t.Errorf("it is changed: %v", err)
	}
}

// The API server takes a Cluster of which it then refuses the Services. CNMSQL_KUBE_BIN names a
// directory with etcd and kube-apiserver.
func TestARealAPIServerLeadsWritesInSpiteOfATypo(t *testing.T) {
	server := realAPIServer(t)
	for name, spoil := range map[string]func(*v1alpha1.ClusterSpec){
		"name": func(s *v1alpha1.ClusterSpec) {
			s.InheritedMetadata = &v1alpha1.InheritedMetadata{
				Labels: map[string]v1alpha1.LabelValue{"the team": "data"}}
		},
		"ranges": func(s *v1alpha1.ClusterSpec) {
			s.Managed = &v1alpha1.ManagedSpec{Services: &v1alpha1.ManagedServices{Template: &v1alpha1.ServiceTemplate{
				Spec: v1alpha1.ServiceTemplateSpec{Type: corev1.ServiceTypeLoadBalancer,
					LoadBalancerSourceRanges: []string{"10.0.0.0/33"}}}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := aNewCluster()
			c.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: name}
			must(t, server.Create(t.Context(), c))
			leads := func(n, but string) {
				t.Helper()
				to, err := routeTo(t, server, c, c.Name+n)
				if to != c.Name+n || (err != nil) != (but != "") {
					t.Errorf("%s is primary, and writes are led to %s: %v", c.Name+n, to, err)
				}
			}
			leads("-1", "")
			good := c.Spec.DeepCopy()
			spoil(&c.Spec)
			must(t, server.Update(t.Context(), c)) // it takes that
			leads("-2", "refused")
			leads("-3", "refused")
			c.Spec = *good
			must(t, server.Update(t.Context(), c))
			leads("-3", "")
			leads("-1", "") // by a whole apply: what was patched is in nobody's way
		})
	}
}
