package operator

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
)

// exceedsQuota reports whether a Pod was refused because, with those that are there, it exceeds a
// ResourceQuota. The API server says Forbidden then, as of every other refusal by an admission
// plugin, and gives neither a cause nor details: its sentence alone tells them apart. It is looked
// for where the plugin's own words begin, so that no policy's text is taken for it.
func exceedsQuota(err error, pod string) bool {
	_, is := quotaSays(err, pod)
	return is
}

// quotaSays returns what follows where the API server says that a Pod exceeds a quota.
func quotaSays(err error, pod string) (says string, is bool) {
	var answer apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &answer) {
		return "", false
	}
	return strings.CutPrefix(answer.Status().Message, fmt.Sprintf("pods %q is forbidden: exceeded quota: ", pod))
}

// exceedsWithout reports whether the Pod that a quota refused exceeds it also when the present one, which is
// counted among what is used, is gone. What it would take is in the API server's words: defaults of a LimitRange
// and containers of webhooks are in it. Words that cannot be read say nothing, and neither do the quotas
// that were not looked at because of this one.
func exceedsWithout(err error, present *corev1.Pod) bool {
	says, _ := quotaSays(err, present.Name)
	_, says, _ = strings.Cut(says, ", requested: ")
	requested, says, _ := strings.Cut(says, ", used: ")
	used, limited, _ := strings.Cut(says, ", limited: ")
	takes, has, most := amounts(requested), amounts(used), amounts(limited)
	for name, amount := range takes {
		limit, isLimited := most[name]
		before, isUsed := has[name]
		if !isLimited || !isUsed {
			continue
		}
		before.Sub(counted(present, string(name)))
		if before.Sign() > 0 { // otherwise the present one is not counted yet
			amount.Add(before)
		}
		if amount.Cmp(limit) > 0 {
			return true
		}
	}
	return false
}

// amounts reads what a quota's refusal lists, as "limits.memory=4Gi,pods=1". It lacks what cannot be read.
func amounts(text string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for one := range strings.SplitSeq(text, ",") {
		name, amount, _ := strings.Cut(one, "=")
		if quantity, err := resource.ParseQuantity(amount); err == nil {
			list[corev1.ResourceName(name)] = quantity
		}
	}
	return list
}

// counted is how much of what a quota limits by that name a running Pod takes.
func counted(pod *corev1.Pod, name string) resource.Quantity {
	if name == "pods" || name == "count/pods" {
		return *resource.NewQuantity(1, resource.DecimalSI)
	}
	if of, isLimit := strings.CutPrefix(name, "limits."); isLimit {
		return podresource.PodLimits(pod, podresource.PodResourcesOptions{})[corev1.ResourceName(of)]
	}
	of := corev1.ResourceName(strings.TrimPrefix(name, "requests."))
	return podresource.PodRequests(pod, podresource.PodResourcesOptions{})[of]
}
