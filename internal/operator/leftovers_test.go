package operator

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// What an instance has besides its Pod and its claim is found and removed once both are gone, and nobody names it.
func TestWhatIsLeftOfAnInstanceThatIsGoneIsRemoved(t *testing.T) {
	kept := aVolume("c-3", "v-3")
	metav1.SetMetaDataAnnotation(&kept.ObjectMeta, v1alpha1.AnnotationKept, "2026-01-01T00:00:00Z")
	named := aCluster()
	named.Status.InstanceNames = append(named.Status.InstanceNames, "c-3")
	another := aNewCluster()
	another.UID = "another"
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-3"}}
	for what, of := range map[string]struct {
		now  *v1alpha1.Cluster
		also client.Object
		goes bool
	}{
		"nothing else is there":           {aCluster(), nil, true},
		"its volume is kept":              {aCluster(), kept, true},
		"somebody has a Pod of its name":  {aCluster(), foreign, true},
		"its Pod stops":                   {aCluster(), aPod("c-3", "third", "n3"), false},
		"its claim is there":              {aCluster(), aVolume("c-3", "v-3"), false},
		"the status names it by now":      {named, nil, false},
		"another Cluster is there by now": {another, nil, false},
	} {
		server := newAPI(t, of.now)
		c, p := aCluster(), newPrerequisites(server, server)
		must(t, p.defaultServices(t.Context(), c))
		for _, instance := range []string{"c-1", "c-3"} {
			must(t, p.instance(t.Context(), c, anAuthority(t), instance))
		}
		if of.also != nil {
			must(t, server.Create(t.Context(), of.also))
		}
		must(t, p.leftOvers(t.Context(), c))
		for _, kind := range []client.Object{&corev1.Service{}, &corev1.ServiceAccount{}, &rbacv1.Role{},
			&rbacv1.RoleBinding{}, &corev1.Secret{}} {
			for name, stays := range map[string]bool{"c-1": true, "c-3": !of.goes} {
				if _, is := kind.(*corev1.Secret); is {
					name = resources.TLSSecret(name)
				}
				err := server.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, kind)
				must(t, client.IgnoreNotFound(err))
				if is := err == nil; is != stays {
					t.Errorf("%s: %T %s is there: %t", what, kind, name, is)
				}
			}
		}
		if _, are := led(t, server)["c-rw"]; !are {
			t.Errorf("%s: -rw is gone", what)
		}
	}
}

// A Cluster is whole with what is left: that the API server lets nobody delete it hinders nothing, and is told.
func TestWhatIsLeftAndCannotBeRemovedHindersNothing(t *testing.T) {
	server := newAPI(t, aCluster())
	c, p := aCluster(), newPrerequisites(server, server)
	must(t, p.instance(t.Context(), c, anAuthority(t), "c-3"))
	server.refuseDelete = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "c-3-tls",
		errors.New("protected"))
	for range 2 { // now, and while the API server is not asked again
		_, asides, err := p.ensure(t.Context(), c)
		isTold := slices.ContainsFunc(asides, func(aside core.Problem) bool {
			return aside.Reason == core.ReasonActionFailed && strings.Contains(aside.Message, "protected")
		})
		if err != nil || !isTold {
			t.Errorf("it is told that %v, and besides %v", err, asides)
		}
	}
	server.refuseDelete = nil
	c.Generation++
	if _, asides, err := p.ensure(t.Context(), c); err != nil || len(asides) > 0 {
		t.Errorf("once it can be removed: %v, and besides %v", err, asides)
	}
}
