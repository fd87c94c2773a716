package resources

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
)

// podSecurity is the restricted profile; spec.podSecurityContext replaces those
// fields that it names, and leaves the others.
func podSecurity(c *v1alpha1.Cluster) *corev1.PodSecurityContext {
	// The whole volume is given to the group only when its root is not the
	// group's already: on a large volume that takes minutes.
	change := corev1.FSGroupChangeOnRootMismatch
	base := &corev1.PodSecurityContext{
		RunAsNonRoot:        new(true),
		RunAsUser:           new(int64(layout.UserID)),
		RunAsGroup:          new(int64(layout.GroupID)),
		FSGroup:             new(int64(layout.GroupID)),
		FSGroupChangePolicy: &change,
		SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	return reservePorts(overlay(base, c.Spec.PodSecurityContext))
}

const reservedPorts = "net.ipv4.ip_local_reserved_ports"

// reservePorts keeps the kernel from giving a port of ours to a connection that the Pod
// makes: those of administration and of the group lie in the range that it takes such
// ports from, and while the connection stands, mysqld could not listen there. Who names
// the sysctl in spec.podSecurityContext sees to it himself. It is one of Kubernetes' safe
// sysctls, which no kubelet and no Pod security standard refuses (since 1.27).
func reservePorts(s *corev1.PodSecurityContext) *corev1.PodSecurityContext {
	if slices.ContainsFunc(s.Sysctls, func(c corev1.Sysctl) bool { return c.Name == reservedPorts }) {
		return s
	}
	var ports []string
	for _, p := range layout.Ports {
		ports = append(ports, strconv.Itoa(int(p)))
	}
	s.Sysctls = append(s.Sysctls, corev1.Sysctl{Name: reservedPorts, Value: strings.Join(ports, ",")})
	return s
}

// containerSecurity is the restricted profile with a read-only root;
// spec.securityContext replaces those fields that it names.
func containerSecurity(c *v1alpha1.Cluster) *corev1.SecurityContext {
	base := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	return overlay(base, c.Spec.SecurityContext)
}

// overlay puts the fields that are set in over onto base, and returns base. It
// goes by the JSON form, where a field that is not set is absent.
func overlay[T any](base, over *T) *T {
	if over == nil {
		return base
	}
	text, err := json.Marshal(over)
	if err == nil {
		err = json.Unmarshal(text, base)
	}
	if err != nil {
		// What the API server decoded from JSON is JSON again.
		panic("resources: " + err.Error())
	}
	return base
}
