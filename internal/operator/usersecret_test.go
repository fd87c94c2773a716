package operator

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// TestTheSecretThatTheOperatorMakesIsNoneOfTheUsers whether it is there or not: to make it would have it told to be
// in the way. A cluster that is made has its account in it, and goes on.
func TestTheSecretThatTheOperatorMakesIsNoneOfTheUsers(t *testing.T) {
	name := resources.Names("c").AppSecret()
	for _, isThere := range []bool{false, true} {
		c, a := aCluster(), newAPI(t)
		c.Status.EstablishedAt = nil
		c.Spec.Bootstrap =
			&v1alpha1.BootstrapSpec{InitDB: &v1alpha1.InitDBSpec{Secret: &v1alpha1.LocalObjectReference{Name: name}}}
		if isThere {
			must(t, a.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
				Data: map[string][]byte{"username": []byte("app"), "password": []byte("one")}}))
		}
		_, _, err := newPrerequisites(a, a).ensure(t.Context(), c)
		var mend *userError
		if !errors.As(err, &mend) || mend.Reason != core.ProblemSecretOwn ||
			!strings.Contains(err.Error(), "a Secret of another name") {
			t.Errorf("there: %t: %v", isThere, err)
		}
	}
	c, a := aCluster(), newAPI(t)
	c.Status.EstablishedAt = nil
	must(t, ensured(t, a, c))
	c.Status.EstablishedAt = new(metav1.NowMicro())
	c.Spec.Bootstrap =
		&v1alpha1.BootstrapSpec{InitDB: &v1alpha1.InitDBSpec{Secret: &v1alpha1.LocalObjectReference{Name: name}}}
	must(t, ensured(t, a, c))
}

func ensured(t *testing.T, a *api, c *v1alpha1.Cluster) error {
	t.Helper()
	_, asides, err := newPrerequisites(a, a).ensure(t.Context(), c)
	if len(asides) > 0 {
		t.Errorf("it says %v", asides)
	}
	return err
}
