package resources

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/declared"
)

// DisruptionBudget lets one instance be evicted at a time, the primary too, once
// all others are ready. It is one budget over all instances: with a scale
// subresource a budget over some of the Pods would still count them all, and
// never allow anything. A cluster of one instance does not hold up a drain.
// It is nil when the user wants none.
//
// It counts from what is there: while spec.instances is lowered and the others are not removed yet,
// all of them are members. A group of two allows none: half of it is no majority.
func DisruptionBudget(c *v1alpha1.Cluster) *policyv1.PodDisruptionBudget {
	if c.Spec.EnablePDB != nil && !*c.Spec.EnablePDB {
		return nil
	}
	members := max(c.Spec.Instances, int32(len(c.Status.InstanceNames)))
	least := intstr.FromInt32(members - spare(c, members))
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   typeMeta("policy/v1", "PodDisruptionBudget"),
		ObjectMeta: meta(c, Names(c.Name).DisruptionBudget(), componentCluster),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least,
			Selector:     &metav1.LabelSelector{MatchLabels: InstanceLabels(c)},
		},
	}
}

// spare is how many of so many instances may be away at a time: one, and of a group as many as
// leave it its majority.
func spare(c *v1alpha1.Cluster, members int32) int32 {
	if !declared.Topology(&c.Spec).NeedsMajority() || members < 2 {
		return 1
	}
	return members - members/2 - 1
}
