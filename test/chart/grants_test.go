package chart

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
)

// TestTheOperatorMayDoWhatItAllowsOthers holds the chart's rules to the Roles that the operator makes for instances and
// Jobs: the API server lets nobody give a right that they have not.
func TestTheOperatorMayDoWhatItAllowsOthers(t *testing.T) {
	may := rights(operatorRole(t))
	asynchronous, group := &v1alpha1.Cluster{}, &v1alpha1.Cluster{}
	group.Spec.Replication.Mode = v1alpha1.ReplicationGroup
	roles := []*rbacv1.Role{resources.Role(asynchronous, "c-1"), resources.Role(group, "c-1")}
	for _, o := range resources.BackupObjects(asynchronous, &v1alpha1.Backup{}, nil, pki.Bundle{}) {
		if role, is := o.(*rbacv1.Role); is {
			roles = append(roles, role)
		}
	}
	if len(roles) != 3 {
		t.Fatalf("a Backup has %d Roles", len(roles)-2)
	}
	for _, role := range roles {
		for resource, verbs := range rights(rbacv1.ClusterRole{Rules: role.Rules}) {
			for _, verb := range verbs {
				if !slices.Contains(may[resource], verb) {
					t.Errorf("the operator gives %s on %s, and may not do it itself", verb,
						strings.TrimPrefix(resource, "/"))
				}
			}
		}
	}
}
