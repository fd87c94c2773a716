package resources

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/declared"
)

// ServiceAccount is who an instance is to the API server.
func ServiceAccount(c *v1alpha1.Cluster, instance string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:   typeMeta("v1", "ServiceAccount"),
		ObjectMeta: instanceMeta(c, instance, instance),
	}
}

// Role is what an instance may do: follow its Cluster, say in its status that
// it became primary (the policy cnmsql-instance-status holds it to that), and
// hold the Lease of the primary, which the operator makes: creating could not be
// restricted to a name. A member of a group has nothing to say there: it rings the
// operator's doorbell, an annotation of its own Pod, and no more.
func Role(c *v1alpha1.Cluster, instance string) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   typeMeta("rbac.authorization.k8s.io/v1", "Role"),
		ObjectMeta: instanceMeta(c, instance, instance),
		Rules: append([]rbacv1.PolicyRule{rule(v1alpha1.GroupVersion.Group, "clusters", []string{c.Name}, "get",
			"watch")}, writes(c, instance)...),
	}
}

func writes(c *v1alpha1.Cluster, instance string) []rbacv1.PolicyRule {
	topology := declared.Topology(&c.Spec)
	var rules []rbacv1.PolicyRule
	if topology.RingsDoorbell() {
		rules = append(rules, rule(corev1.GroupName, "pods", []string{instance}, "patch"))
	}
	if topology.TellsPrimary() {
		rules = append(rules, rule(v1alpha1.GroupVersion.Group, "clusters/status", []string{c.Name}, "patch"))
	}
	if topology.HasLease() {
		name := Names(c.Name).Lease()
		rules = append(rules, rule(coordinationv1.GroupName, "leases", []string{name}, "get", "update"))
	}
	return rules
}

func rule(group, resource string, names []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource},
		ResourceNames: names, Verbs: verbs}
}

// Lease is the record that a primary holds while it is writable, as the operator makes it:
// nobody's, and of no epoch. A group has none, and gets nil.
func Lease(c *v1alpha1.Cluster) *coordinationv1.Lease {
	if !declared.Topology(&c.Spec).HasLease() {
		return nil
	}
	return &coordinationv1.Lease{
		TypeMeta:   typeMeta("coordination.k8s.io/v1", "Lease"),
		ObjectMeta: meta(c, Names(c.Name).Lease(), componentCluster),
	}
}

// RoleBinding gives an instance its Role.
func RoleBinding(c *v1alpha1.Cluster, instance string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   typeMeta("rbac.authorization.k8s.io/v1", "RoleBinding"),
		ObjectMeta: instanceMeta(c, instance, instance),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: instance},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: instance, Namespace: c.Namespace}},
	}
}
