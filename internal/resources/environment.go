package resources

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
)

// environment is the manager's, then the user's. A name of the manager's stays
// the manager's.
func environment(c *v1alpha1.Cluster, instance string, serverID uint32) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: layout.EnvCluster, Value: c.Name},
		{Name: layout.EnvInstance, Value: instance},
		{Name: layout.EnvServerID, Value: strconv.FormatUint(uint64(serverID), 10)},
		{Name: layout.EnvLogLevel, Value: c.Spec.LogLevel},
		fromField(layout.EnvNamespace, "metadata.namespace"),
		fromField(layout.EnvPodUID, "metadata.uid"),
		fromField(layout.EnvNode, "spec.nodeName"),
		fromField(layout.EnvPodIP, "status.podIP"),
		fromLimit(layout.EnvMemoryLimit, "limits.memory"),
		fromLimit(layout.EnvCPULimit, "limits.cpu"),
	}
	own := len(env)
	for _, e := range c.Spec.Env {
		taken := slices.ContainsFunc(env[:own], func(o corev1.EnvVar) bool { return o.Name == e.Name })
		if !taken {
			env = append(env, e)
		}
	}
	return env
}

func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path},
	}}
}

// fromLimit is what the node can give when there is no limit.
func fromLimit(name string, limit string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		ResourceFieldRef: &corev1.ResourceFieldSelector{
			ContainerName: layout.Container,
			Resource:      limit,
			Divisor:       resource.MustParse("1"),
		},
	}}
}
