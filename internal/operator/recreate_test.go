package operator

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
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

// answering gives one answer to every request for a Pod.
type answering struct {
	*api
	answer error
}

func (s answering) Create(context.Context, client.Object, ...client.CreateOption) error {
	return s.answer
}

// Quotas refuse a Pod beside the one that it is to replace, and say Forbidden like policies, which refuse
// it in any case.
func TestAQuotaAloneLetsAPodGoThatIsToBeReplaced(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	forbidden := func(why string) error { return apierrors.NewForbidden(pods, "c-2", errors.New(why)) }
	webhook := apierrors.NewGenericServerResponse(418, "create", pods, "c-2", "denied", 0, false)
	for name, of := range map[string]struct {
		answer error
		gone   bool
	}{
		"a quota":               {forbidden("exceeded quota: q, requested: pods=1, used: pods=3"), true},
		"one that wants limits": {forbidden("failed quota: small: must specify limits.memory for: mysql"), false},
		"a policy": {forbidden("ValidatingAdmissionPolicy 'p' with binding 'p' denied request: exceeded quota: of " +
			"patience"), false},
		"Pod security":     {forbidden(`violates PodSecurity "restricted:latest": seccompProfile`), false},
		"a limit":          {forbidden("maximum memory usage per Container is 1Gi, but limit is 2Gi"), false},
		"a webhook":        {webhook, false},
		"there is one":     {apierrors.NewAlreadyExists(pods, "c-2"), true},
		"a busy server":    {apierrors.NewTooManyRequests("later", 1), true},
		"a server's error": {apierrors.NewInternalError(errors.New("broken")), true},
	} {
		server := answering{newAPI(t, aVolume("c-2", "v-2"), aPod("c-2", "pod-2", "n2")), of.answer}
		a := anActor(server.api)
		a.client = server
		err := a.change(t.Context(), aCluster(), nil, core.DeletePod{Instance: "c-2", UID: "pod-2",
			Reason: core.ReasonRollout})
		if gone := !isThere(t, server.api, &corev1.Pod{}, "c-2"); gone != of.gone || gone != (err == nil) {
			t.Errorf("%s: the Pod is gone: %t, and the error is %v", name, gone, err)
		}
		if err != nil && !strings.Contains(err.Error(), "or have whoever refuses the Pod there admit it") {
			t.Errorf("%s: it is not said what to do: %v", name, err)
		}
	}
}

// TestAQuotaKeepsAPodThatNoneCouldFollow even where the room of the present one is free.
func TestAQuotaKeepsAPodThatNoneCouldFollow(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	with := func(memory string) corev1.ResourceRequirements {
		list := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
		return corev1.ResourceRequirements{Requests: list, Limits: list}
	}
	for says, gone := range map[string]bool{
		"requested: limits.memory=3Gi, used: limits.memory=2Gi, limited: limits.memory=3Gi":                  true,
		"requested: limits.memory=4Gi, used: limits.memory=2Gi, limited: limits.memory=3Gi":                  false,
		"requested: memory=4Gi,pods=1, used: memory=2Gi,pods=3, limited: memory=3Gi,pods=3":                  false,
		"requested: requests.memory=3584Mi, used: requests.memory=2560Mi, limited: requests.memory=4Gi":      true,
		"requested: requests.memory=3585Mi, used: requests.memory=2560Mi, limited: requests.memory=3Gi":      false,
		"requested: pods=1, used: pods=3, limited: pods=3":                                                   true,
		"requested: count/pods=1, used: count/pods=4, limited: count/pods=3":                                 false,
		"requested: limits.cpu=1, used: limits.cpu=0, limited: limits.cpu=500m":                              false,
		"requested: limits.cpu=some, used: limits.cpu=0, limited: limits.cpu=0":                              true,
		"the words of another version of Kubernetes, which cannot be read, keep no Pod from being recreated": true,
	} {
		pod := aPod("c-2", "pod-2", "n2")
		pod.Spec.InitContainers = []corev1.Container{{Name: "installer", Resources: with("1Gi")},
			{Name: "mesh", Resources: with("512Mi"), RestartPolicy: &always}}
		pod.Spec.Containers = []corev1.Container{{Name: "mysql", Resources: with("1Gi")},
			{Name: "sidecar", Resources: with("512Mi")}}
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "c-2",
			errors.New("exceeded quota: q, "+says))
		server := answering{newAPI(t, aVolume("c-2", "v-2"), pod), forbidden}
		a := anActor(server.api)
		a.client = server
		err := a.change(t.Context(), aCluster(), nil, core.DeletePod{Instance: "c-2", UID: "pod-2",
			Reason: core.ReasonRollout})
		if is := !isThere(t, server.api, &corev1.Pod{}, "c-2"); is != gone || is != (err == nil) {
			t.Errorf("%s: the Pod is gone: %t, and the error is %v", says, is, err)
		}
		if err != nil && !strings.Contains(err.Error(), "raise the quota") {
			t.Errorf("%s: it is not said what to do: %v", says, err)
		}
	}
}

// The API server's own words for a quota are what tells it from a policy.
func TestARealAPIServerNamesAQuotaThatAPodExceeds(t *testing.T) {
	server := realAPIServer(t)
	must(t, server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "small",
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}))
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "small", Name: "small"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	must(t, server.Create(t.Context(), quota))
	quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, quota.Spec.Hard
	must(t, server.Status().Update(t.Context(), quota))
	c := aCluster()
	c.Namespace = "small"
	pod := resources.Pod(c, "c-2", resources.PodOptions{OperatorImage: "cnmsql", DefaultImage: "mysql", ServerID: 2})
	try := func(pod *corev1.Pod) error { return server.Create(t.Context(), pod.DeepCopy(), client.DryRunAll) }
	awaitTaken(t, func() bool { return exceedsQuota(try(pod), "c-2") })
	if err := try(pod); refusesSuccessor(err, "c-2") {
		t.Errorf("a quota: %v", err)
	}
	if err := try(pod); !exceedsWithout(err, pod) { // it takes one, and none are allowed
		t.Errorf("its words are not read: %v", err)
	}
	pod.Spec.HostNetwork = true
	if err := try(pod); exceedsQuota(err, "c-2") || !refusesSuccessor(err, "c-2") {
		t.Errorf("Pod Security: %v", err)
	}
}
