package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"cnmsql.co/api/v1alpha1"
)

// startupProbe gives the instance spec.maxStartDelay. It asks every second, for
// an instance is not in a Service before it has succeeded once.
func startupProbe(c *v1alpha1.Cluster) *corev1.Probe {
	return probe("/startupz", 1, c.Spec.MaxStartDelay)
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
