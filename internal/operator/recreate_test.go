package operator

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/internal/core"
)

// strict refuses Pods that ask for more than their limit, as the API server does before it looks
// whether there is one of the name.
type strict struct{ *api }

func (s strict) Create(ctx context.Context, obj client.Object, o ...client.CreateOption) error {
	if pod, is := obj.(*corev1.Pod); is {
		r := pod.Spec.Containers[0].Resources
		if request, limit := r.Requests.Memory(), r.Limits.Memory(); !limit.IsZero() && request.Cmp(*limit) > 0 {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod.Name, field.ErrorList{field.Invalid(
				field.NewPath("spec", "containers[0]", "resources", "requests"), request.String(), "must be less")})
		}
	}
	return s.api.Create(ctx, obj, o...)
}

// A spec of which no Pod can be made must not cost the Pod that runs.
func TestAPodIsNotDeletedForOneThatKubernetesRefuses(t *testing.T) {
	for limit, wantGone := range map[string]bool{"1Gi": false, "4Gi": true} {
		server := strict{newAPI(t, aVolume("c-2", "v-2"), aPod("c-2", "pod-2", "n2"))}
		c := aCluster()
		c.Spec.Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}}
		a := anActor(server.api)
		a.client = server
		err := a.change(t.Context(), c, nil, core.DeletePod{Instance: "c-2", UID: "pod-2", Reason: core.ReasonRollout})
		if gone := !isThere(t, server.api, &corev1.Pod{}, "c-2"); gone != wantGone || gone != (err == nil) {
			t.Errorf("a limit of %s: the Pod is gone: %t, and the error is %v", limit, gone, err)
		}
		if err != nil && !strings.Contains(err.Error(), "correct the spec") {
			t.Errorf("it is not said what to do: %v", err)
		}
		end := core.DeletePod{Instance: "c-2", UID: "pod-2", Reason: core.ReasonInstanceRestarted}
		must(t, a.change(t.Context(), c, nil, end)) // one that does not run goes in any case
		if isThere(t, server.api, &corev1.Pod{}, "c-2") {
			t.Error("a Pod that does not run stays")
		}
	}
}
