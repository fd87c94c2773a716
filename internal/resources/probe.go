package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/declared"
)

// startupProbe gives the manager spec.maxStartDelay to answer. For mysqld the manager
// keeps that bound itself: ended by the kubelet, the container would take the manager and
// what it says of the recovery with it. It asks every second, for an instance is not in a
// Service before it has succeeded once.
func startupProbe(c *v1alpha1.Cluster) *corev1.Probe {
	return probe("/startupz", 1, int32(declared.MaxStart(&c.Spec).Seconds()))
}

// deadGrace is what a manager gets that has not answered for half a minute. One that is
// stopped or hangs does nothing with more, and as long as it lives, nobody ends the mysqld
// that it cannot fence: without this it would be spec.maxStopDelay.
const deadGrace = 5

// livenessProbe ends a manager that cannot fence its mysqld any more.
func livenessProbe() *corev1.Probe {
	p := probe("/livez", 5, 6)
	grace := int64(deadGrace)
	p.TerminationGracePeriodSeconds = &grace
	return p
}

// probe asks the manager, which answers from memory and at once: an answer that
// takes seconds is a manager that does not run.
func probe(path string, period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("probes")},
		},
		PeriodSeconds:    period,
		TimeoutSeconds:   5,
		FailureThreshold: failures,
	}
}
