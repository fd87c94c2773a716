package operator

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/printable"
)

// growsWithin is how long a volume may take to grow before it is told that it does not.
const growsWithin = 10 * time.Minute

// notYet is since when a volume is seen to be smaller than what is asked for. An operator that starts sees it anew.
type notYet struct {
	cluster types.NamespacedName
	asked   string
	since   time.Time
}

// notGrown tells of instances whose claims ask for more than their volumes have: at once where Kubernetes says
// that it cannot be, otherwise after a while. That the API server took the larger size says nothing of it.
func (p *prerequisites) notGrown(ctx context.Context, c *v1alpha1.Cluster) (asides []core.Problem) {
	var all []string
	for _, name := range c.Status.InstanceNames {
		claim, err := find(ctx, p.client, &corev1.PersistentVolumeClaim{}, types.NamespacedName{Namespace: c.Namespace,
			Name: name})
		if err != nil || claim == nil || claim.DeletionTimestamp != nil || !observation.IsInstances(c, claim) {
			continue // whoever makes it tells what is wrong with it
		}
		why, hinders := hindersGrowth(claim)
		if since := p.behindSince(c, claim); since.IsZero() || !hinders && time.Since(since) < growsWithin {
			continue
		}
		has, asks := claim.Status.Capacity.Storage(), claim.Spec.Resources.Requests.Storage()
		all = append(all, fmt.Sprintf("%s has %s of %s (%s)", name, has, asks, why))
	}
	if len(all) == 0 {
		return nil
	}
	return []core.Problem{{Reason: core.ReasonNotGrown, Message: "Kubernetes took a larger size, and volumes have " +
		"not grown: " + strings.Join(all, ", ") + "; see kubectl describe pvc, and have whoever runs the storage " +
		"class mend it; docs/provisioning.md says more under \"Volumes\""}}
}

// behindSince returns since when a claim's volume is smaller than it asks for; zero where it is not. A size that is
// raised once more begins anew.
func (p *prerequisites) behindSince(c *v1alpha1.Cluster, claim *corev1.PersistentVolumeClaim) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	asks := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	has, isTold := claim.Status.Capacity[corev1.ResourceStorage]
	if claim.Status.Phase != corev1.ClaimBound || !isTold || has.Cmp(asks) >= 0 {
		delete(p.behind, claim.UID)
		return time.Time{}
	}
	b, known := p.behind[claim.UID]
	if !known || b.asked != asks.String() {
		b = notYet{cluster: client.ObjectKeyFromObject(c), asked: asks.String(), since: time.Now()}
		p.behind[claim.UID] = b
	}
	return b.since
}

// forgetBehind drops what is remembered of the volumes of a Cluster; whoever calls it has the lock.
func (p *prerequisites) forgetBehind(cluster types.NamespacedName) {
	maps.DeleteFunc(p.behind, func(_ types.UID, b notYet) bool { return b.cluster == cluster })
}

// hindersGrowth returns what Kubernetes says of a volume that is to grow, and whether that is an error.
func hindersGrowth(claim *corev1.PersistentVolumeClaim) (why string, isError bool) {
	why = "nobody grows it: is there a resizer for its storage class?"
	for _, condition := range claim.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		says := printable.Text(strings.TrimSuffix(string(condition.Type)+": "+condition.Message, ": "))
		switch condition.Type {
		case corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError:
			return says, true
		case corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending:
			why = says
		}
	}
	status := claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
	switch status {
	case corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return string(status), true
	}
	return why, false
}
