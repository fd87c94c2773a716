package resources

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/layout"
)

// PodOptions are what a Pod is made of besides the Cluster.
type PodOptions struct {
	// OperatorImage holds the manager's binary.
	OperatorImage string
	// DefaultImage holds mysqld of a new Cluster whose spec.imageName is empty.
	DefaultImage string
	// Image is that of mysqld where it is another than the Cluster's; "" where it is not.
	Image    string
	ServerID uint32
	// Awaited is the name by which the status awaits this Pod; "" when it does not.
	Awaited string
}

// Image is the image that holds mysqld. A Cluster that names none and has data keeps what it
// ran: another default of the operator would upgrade its servers, and there is no way back.
func Image(c *v1alpha1.Cluster, defaultImage string) string {
	ran := ""
	if c.Status.EstablishedAt != nil {
		ran = c.Status.Image
	}
	return cmp.Or(c.Spec.ImageName, ran, defaultImage)
}

// Pod is an instance's Pod, without the labels role and routable: these change
// in its life, and are set by whoever decides them.
func Pod(c *v1alpha1.Cluster, instance string, o PodOptions) *corev1.Pod {
	spec := podSpec(c, instance, o)
	m := instanceMeta(c, instance, instance)
	annotate(&m, v1alpha1.AnnotationPodSpecHash, hash(c, spec))
	annotate(&m, v1alpha1.AnnotationPodInputHash, inputHash(c, instance, o))
	annotate(&m, v1alpha1.AnnotationManagerImage, o.OperatorImage)
	if o.Awaited != "" {
		annotate(&m, v1alpha1.AnnotationAwaited, o.Awaited)
	}
	return &corev1.Pod{TypeMeta: typeMeta("v1", "Pod"), ObjectMeta: m, Spec: spec}
}

// Made tells a Pod that would be made now from one that would not.
type Made struct {
	// Spec is the hash of the Pod's spec, as this release builds it, and Inputs of what it is built from;
	// "" of a Pod of a release that did not note that.
	Spec, Inputs string
}

// PodSpecHash is Made.Spec of an up-to-date Pod.
func PodSpecHash(c *v1alpha1.Cluster, instance string, o PodOptions) string {
	return hash(c, podSpec(c, instance, o))
}

// MadeNow is what an up-to-date Pod says of itself, and MadeAs what a Pod does.
func MadeNow(c *v1alpha1.Cluster, instance string, o PodOptions) Made {
	return Made{PodSpecHash(c, instance, o), inputHash(c, instance, o)}
}

// MadeAs returns what a Pod was made as, by its annotations. A Pod without them has "" in it.
func MadeAs(pod *corev1.Pod) Made {
	return Made{pod.Annotations[v1alpha1.AnnotationPodSpecHash], pod.Annotations[v1alpha1.AnnotationPodInputHash]}
}

// SameInputs reports whether both are known to be built from the same, by whichever release.
func (m Made) SameInputs(other Made) bool { return m.Inputs != "" && m.Inputs == other.Inputs }

func podSpec(c *v1alpha1.Cluster, instance string, o PodOptions) corev1.PodSpec {
	grace := int64(declared.MaxStop(&c.Spec).Seconds())
	return corev1.PodSpec{
		// Environment variables for every Service of the namespace would only
		// be noise, and could collide with mysqld's own.
		EnableServiceLinks:            new(false),
		AutomountServiceAccountToken:  new(true),
		ServiceAccountName:            instance,
		Hostname:                      instance,
		RestartPolicy:                 corev1.RestartPolicyAlways,
		TerminationGracePeriodSeconds: &grace,
		SecurityContext:               podSecurity(c),
		Affinity:                      affinity(c),
		NodeSelector:                  c.Spec.Affinity.NodeSelector,
		Tolerations:                   c.Spec.Affinity.Tolerations,
		TopologySpreadConstraints:     c.Spec.TopologySpreadConstraints,
		PriorityClassName:             c.Spec.PriorityClassName,
		SchedulerName:                 c.Spec.SchedulerName,
		ImagePullSecrets:              pullSecrets(c),
		InitContainers:                []corev1.Container{installer(c, o)},
		Containers:                    []corev1.Container{server(c, instance, o)},
		Volumes:                       volumes(c, instance),
	}
}

const installerName = "install"

// metricsPort is the name of the port of an instance's metrics.
const metricsPort = "metrics"

// Installer is the image that a Pod's manager was to be copied from: as the operator
// asked for it, or in a Pod of an earlier release as the spec has it; "" when it cannot be
// told.
func Installer(pod *corev1.Pod) string {
	if image := pod.Annotations[v1alpha1.AnnotationManagerImage]; image != "" {
		return image
	}
	for _, c := range pod.Spec.InitContainers {
		if c.Name == installerName {
			return c.Image
		}
	}
	return ""
}

// installer copies the manager into the Pod. It asks for the same resources as
// the server, so that it neither changes the Pod's class of service nor fails a
// quota that demands limits; the two never run together.
func installer(c *v1alpha1.Cluster, o PodOptions) corev1.Container {
	return corev1.Container{
		Name:            installerName,
		Image:           o.OperatorImage,
		Command:         []string{"/cnmsql", "instance", "install", "--to", layout.BinDir},
		Resources:       c.Spec.Resources,
		SecurityContext: containerSecurity(c),
		VolumeMounts:    []corev1.VolumeMount{{Name: volumeBin, MountPath: layout.BinDir}},
	}
}

func server(c *v1alpha1.Cluster, instance string, o PodOptions) corev1.Container {
	return corev1.Container{
		Name:            layout.Container,
		Image:           cmp.Or(o.Image, Image(c, o.DefaultImage)),
		ImagePullPolicy: c.Spec.ImagePullPolicy,
		Command:         []string{layout.Binary, "instance", "run"},
		Env:             environment(c, instance, o.ServerID),
		Ports: []corev1.ContainerPort{
			containerPort("mysql", layout.MySQLPort),
			containerPort("mysql-admin", layout.AdminPort),
			containerPort("mysql-group", layout.GroupPort),
			containerPort("control", layout.ControlPort),
			containerPort("probes", layout.ProbePort),
			containerPort(metricsPort, layout.MetricsPort),
		},
		Resources:       c.Spec.Resources,
		SecurityContext: containerSecurity(c),
		StartupProbe:    startupProbe(c),
		LivenessProbe:   livenessProbe(),
		ReadinessProbe:  probe("/readyz", 1, 2),
		VolumeMounts:    mounts(c),
	}
}

func containerPort(name string, number int32) corev1.ContainerPort {
	return corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP}
}

func pullSecrets(c *v1alpha1.Cluster) []corev1.LocalObjectReference {
	var out []corev1.LocalObjectReference
	for _, s := range c.Spec.ImagePullSecrets {
		out = append(out, corev1.LocalObjectReference{Name: s.Name})
	}
	return out
}
