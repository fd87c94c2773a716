package lead

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"cnmsql.co/api/v1alpha1"
)

// podOn is a Pod that is ready on a node; of an instance, unless it is in the operators' namespace.
func podOn(namespace, name, node, ip string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	if namespace != "operators" {
		p.Labels = map[string]string{v1alpha1.LabelCluster: "c", "app.kubernetes.io/component": "instance"}
	}
	return p
}

func TestABystanderTellsWhichOfTwoOperatorsIsCutOff(t *testing.T) {
	operators := []runtime.Object{podOn("operators", "me", "n1", "10.0.1.1"),
		podOn("operators", "leader", "n2", "10.0.2.1")}
	beside := []runtime.Object{podOn("ns", "c-1", "n1", "10.0.1.2"), podOn("ns", "c-2", "n2", "10.0.2.2")}
	unready := podOn("ns", "c-4", "n4", "10.0.4.2")
	unready.Status.Conditions[0].Status = corev1.ConditionFalse
	third := slices.Concat(beside, []runtime.Object{podOn("ns", "c-3", "n3", "10.0.3.2")})
	unread := func() (bool, runtime.Object, error) { return true, nil, errors.New("the API server does not answer") }
	for name, c := range map[string]struct {
		pods    []runtime.Object
		answers []string
		unread  bool
		reached bool
	}{
		"an instance on a third node answers": {third, []string{"10.0.3.2:8080"}, false, true},
		"only those beside the two answer":    {third, []string{"10.0.1.2:8080", "10.0.2.2:8080"}, false, false},
		"nobody is on a third node":           {beside, nil, false, true},
		"who is there was not ready anyway":   {slices.Concat(beside, []runtime.Object{unready}), nil, false, true},
		"there is no instance at all":         {nil, nil, false, true},
		"it is not known who is there":        {third, []string{"10.0.3.2:8080"}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			clients := fake.NewClientset(slices.Concat(operators, c.pods)...)
			if c.unread {
				clients.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					return unread()
				})
			}
			b := &bystanders{pods: clients.CoreV1().Pods, namespace: "operators", me: "me", log: logr.Discard(),
				dial: func(_ context.Context, address string) error {
					if slices.Contains(c.answers, address) {
						return nil
					}
					return errors.New("i/o timeout")
				}}
			if got := b.reached(t.Context(), "leader_1_10.0.2.1:8081"); got != c.reached {
				t.Errorf("reached: %t", got)
			}
		})
	}
}
