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

// allowedLabels are the types of SELinux, and allowedSysctls the sysctls, that the baseline
// profile of Kubernetes' Pod Security Standards allows.
var (
	allowedLabels  = []string{"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
	allowedSysctls = []string{
		"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
		"net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
		"net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
		"net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
	}
)

// profileAnnotation begins the names of annotations of a Pod that the API server still turns
// into its containers' AppArmor profiles.
const profileAnnotation = "container.apparmor.security.beta.kubernetes.io/"

// Security refuses security contexts that would give the node away: the operator makes the
// Pods, so that whatever holds the user who wrote the Cluster does not hold them.
// Contexts that are not touched are not judged.
func Security() *admissionv1.ValidatingAdmissionPolicy {
	p := newPolicy(SecurityName, "clusters", admissionv1.Create, admissionv1.Update)
	p.Spec.MatchConditions = []admissionv1.MatchCondition{{
		Name: "security-contexts-set-or-changed",
		Expression: "oldObject == null || object.spec.?securityContext != oldObject.spec.?securityContext || " +
			"object.spec.?podSecurityContext != oldObject.spec.?podSecurityContext || " +
			"object.spec.?inheritedMetadata.?annotations != oldObject.spec.?inheritedMetadata.?annotations",
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
		refusal("securityContext.seccompProfile.type: Unconfined", container+".?seccompProfile.?type.orValue('') != "+
			"'Unconfined'"),
		refusal("podSecurityContext.seccompProfile.type: Unconfined", pod+".?seccompProfile.?type.orValue('') != "+
			"'Unconfined'"),
		refusal("securityContext.windowsOptions.hostProcess", isFalse(container+".?windowsOptions.?hostProcess")),
		refusal("podSecurityContext.windowsOptions.hostProcess", isFalse(pod+".?windowsOptions.?hostProcess")),
		refusal("securityContext.capabilities.add (other than "+strings.Join(allowedCapabilities, " and ")+")",
			fmt.Sprintf("%s.?capabilities.?add.orValue([]).all(c, c in %s)", container, listed(allowedCapabilities))),
		refusal("podSecurityContext.sysctls (other than "+strings.Join(allowedSysctls, ", ")+")",
			fmt.Sprintf("%s.?sysctls.orValue([]).all(s, s.name in %s)", pod, listed(allowedSysctls))),
		refusal("inheritedMetadata.annotations ("+profileAnnotation+"…: unconfined)",
			// A comprehension with two variables is refused by Kubernetes before 1.33.
			fmt.Sprintf("!has(object.spec.inheritedMetadata) || !has(object.spec.inheritedMetadata.annotations) || "+
				"object.spec.inheritedMetadata.annotations.all(k, !k.startsWith('%s') || "+
				"object.spec.inheritedMetadata.annotations[k] != 'unconfined')", profileAnnotation)),
	}
	p.Spec.Validations = append(p.Spec.Validations, confinement("securityContext", container)...)
	p.Spec.Validations = append(p.Spec.Validations, confinement("podSecurityContext", pod)...)
	return p
}

// confinement is what keeps the kernel's modules for access control in force.
func confinement(field, context string) []admissionv1.Validation {
	return []admissionv1.Validation{
		refusal(field+".appArmorProfile.type: Unconfined", context+".?appArmorProfile.?type.orValue('') != "+
			"'Unconfined'"),
		refusal(field+".seLinuxOptions.type (other than "+strings.Join(allowedLabels[1:], ", ")+")",
			fmt.Sprintf("%s.?seLinuxOptions.?type.orValue('') in %s", context, listed(allowedLabels))),
		refusal(field+".seLinuxOptions.user", context+".?seLinuxOptions.?user.orValue('') == ''"),
		refusal(field+".seLinuxOptions.role", context+".?seLinuxOptions.?role.orValue('') == ''"),
	}
}

// listed is a list of texts in CEL.
func listed(texts []string) string { return "['" + strings.Join(texts, "', '") + "']" }

// refusal of a field unless what is allowed holds.
func refusal(field, allowed string) admissionv1.Validation {
	return admissionv1.Validation{Expression: allowed, Message: "spec." + field +
		" is refused: with it, everybody who may edit this Cluster would have more rights on the node than a " +
		"database needs; remove it, or have the operator installed with restrictSecurityContexts=false"}
}
