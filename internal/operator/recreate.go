package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
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
		switch {
		case refusesSuccessor(err, instance):
			return fmt.Errorf("its Pod goes on as it is, for Kubernetes refuses the one that would take its place: %w"+
				"; correct the spec of the Cluster, or have whoever refuses the Pod there admit it", err)
		case exceedsQuota(err, instance):
			return a.hasRoom(ctx, c, instance, err)
		}
		return nil
	})
}

// hasRoom tells whether there is room for an instance's Pod once the present one, beside which a quota refuses
// it, is gone.
func (a *actor) hasRoom(ctx context.Context, c *v1alpha1.Cluster, instance string, refused error) error {
	present, err := find(ctx, a.client, &corev1.Pod{}, client.ObjectKey{Namespace: c.Namespace, Name: instance})
	if err != nil || present == nil || !exceedsWithout(refused, present) {
		return err
	}
	return fmt.Errorf("its Pod goes on as it is, for the one that would take its place exceeds a ResourceQuota, even "+
		"when the present one is gone: %w; have spec.resources ask for less, or raise the quota", refused)
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
