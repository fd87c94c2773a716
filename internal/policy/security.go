package policy

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// SecurityName is the name of the policy on the security contexts of a Cluster.
const SecurityName = "cnmsql-cluster-security"

// allowedCapabilities may be added to a container: neither gives anything on the node.
var allowedCapabilities = []string{"NET_BIND_SERVICE", "SYS_NICE"}

// Security refuses security contexts that would give the node away: the operator makes the
// Pods, so that whatever holds the user who wrote the Cluster does not hold them.
// Contexts that are not touched are not judged.
func Security() *admissionv1.ValidatingAdmissionPolicy {
	p := newPolicy(SecurityName, "clusters", admissionv1.Create, admissionv1.Update)
	p.Spec.MatchConditions = []admissionv1.MatchCondition{{
		Name: "security-contexts-set-or-changed",
		Expression: "oldObject == null || object.spec.?securityContext != oldObject.spec.?securityContext || " +
			"object.spec.?podSecurityContext != oldObject.spec.?podSecurityContext",
	}}
	const container, pod = "object.spec.?securityContext", "object.spec.?podSecurityContext"
	isFalse := func(field string) string { return field + ".orValue(false) == false" }
	p.Spec.Validations = []admissionv1.Validation{
		refusal("securityContext.privileged", isFalse(container+".?privileged")),
		refusal("securityContext.allowPrivilegeEscalation", isFalse(container+".?allowPrivilegeEscalation")),
		refusal("securityContext.runAsNonRoot: false", container+".?runAsNonRoot.orValue(true) == true"),
		refusal("podSecurityContext.runAsNonRoot: false", pod+".?runAsNonRoot.orValue(true) == true"),
		refusal("securityContext.runAsUser: 0", container+".?runAsUser.orValue(999) != 0"),
		refusal("podSecurityContext.runAsUser: 0", pod+".?runAsUser.orValue(999) != 0"),
		refusal("securityContext.procMount", container+".?procMount.orValue('Default') == 'Default'"),
		refusal("securityContext.seccompProfile.type: Unconfined", container+".?seccompProfile.?type.orValue('') != 'Unconfined'"),
		refusal("podSecurityContext.seccompProfile.type: Unconfined", pod+".?seccompProfile.?type.orValue('') != 'Unconfined'"),
		refusal("securityContext.windowsOptions.hostProcess", isFalse(container+".?windowsOptions.?hostProcess")),
		refusal("podSecurityContext.windowsOptions.hostProcess", isFalse(pod+".?windowsOptions.?hostProcess")),
		refusal("securityContext.capabilities.add (other than "+strings.Join(allowedCapabilities, " and ")+")",
			fmt.Sprintf("%s.?capabilities.?add.orValue([]).all(c, c in ['%s'])", container, strings.Join(allowedCapabilities, "', '"))),
	}
	return p
}

// refusal of a field unless what is allowed holds.
func refusal(field, allowed string) admissionv1.Validation {
	return admissionv1.Validation{Expression: allowed, Message: "spec." + field +
		" is refused: it would give whoever may edit this Cluster more than a database on the node; remove it, " +
		"or have the operator installed with restrictSecurityContexts=false"}
}
