package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// mayRecreate asks Kubernetes whether it would take the Pod that would be made now. That there is
// one of its name is looked at after that.
func (a *actor) mayRecreate(ctx context.Context, c *v1alpha1.Cluster, instance string) error {
	ordinal, _ := resources.Ordinal(c.Name, instance)
	pod := resources.Pod(c, instance, a.podOptions(ctx, c, instance, ordinal))
	words := fmt.Sprintf("try pod %s of generation %d", instance, c.Generation)
	return a.request(c, words, func(ctx context.Context) error {
		err := a.client.Create(ctx, pod, client.DryRunAll, client.FieldOwner(resources.FieldManager))
		if refusesSuccessor(err, instance) {
			return fmt.Errorf("its Pod goes on as it is, for Kubernetes refuses the one that would take its place: %w"+
				"; correct the spec of the Cluster, or have whoever refuses the Pod there admit it", err)
		}
		return nil
	})
}

// refusesSuccessor reports whether the API server, or a policy or webhook that it asked, would not
// take an instance's Pod after the present one is gone either. That there is one, that the server is
// busy, or that both together exceed a quota says nothing of that.
func refusesSuccessor(err error, instance string) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || exceedsQuota(err, instance) {
		return false
	}
	switch code := answer.Status().Code; code {
	case http.StatusConflict, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

// exceedsQuota reports whether a Pod was refused because, with those that are there, it exceeds a
// ResourceQuota. The API server says Forbidden then, as of every other refusal by an admission
// plugin, and gives neither a cause nor details: its sentence alone tells them apart. It is looked
// for where the plugin's own words begin, so that no policy's text is taken for it.
func exceedsQuota(err error, pod string) bool {
	var answer apierrors.APIStatus
	return apierrors.IsForbidden(err) && errors.As(err, &answer) &&
		strings.HasPrefix(answer.Status().Message, fmt.Sprintf("pods %q is forbidden: exceeded quota: ", pod))
}
