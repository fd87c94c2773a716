package policy

import admissionv1 "k8s.io/api/admissionregistration/v1"

// GroupName is the name of the policy on what may never change of a group.
const GroupName = "cnmsql-group"

// Group holds every caller, the operator included, to two things that a group does not
// survive: that it is made a second time, and that its members are given another name.
func Group() *admissionv1.ValidatingAdmissionPolicy {
	p := newPolicy(GroupName, "clusters/status", admissionv1.Update)
	p.Spec.MatchConditions = []admissionv1.MatchCondition{{
		Name:       "of-a-group",
		Expression: "has(oldObject.status) && has(oldObject.status.groupReplication)",
	}}
	p.Spec.Variables = []admissionv1.Variable{
		{Name: "old", Expression: "oldObject.status.groupReplication"},
		{Name: "kept", Expression: "has(object.status) && has(object.status.groupReplication)"},
	}
	p.Spec.Validations = []admissionv1.Validation{
		{
			Expression: "!has(variables.old.bootstrapped) || !variables.old.bootstrapped || variables.kept && " +
				"has(object.status.groupReplication.bootstrapped) && object.status.groupReplication.bootstrapped",
			Message: "status.groupReplication.bootstrapped is true and stays so: a group that is made a second " +
				"time is two groups",
		},
		{
			Expression: "!has(variables.old.groupName) || variables.old.groupName == '' || variables.kept && " +
				"has(object.status.groupReplication.groupName) && " +
				"object.status.groupReplication.groupName == variables.old.groupName",
			Message: "status.groupReplication.groupName cannot be changed: members with another name are another group",
		},
	}
	return p
}
