package resources

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
)

// noInstance is no instance's name, for they all end in a number.
const noInstance = "none"

// Services are all Services of a cluster that lead to a role, -rw first. Those for
// writes lead to primary; nowhere if it is "".
func Services(c *v1alpha1.Cluster, primary string) []*corev1.Service {
	return append(DefaultServices(c, primary), AdditionalServices(c, primary)...)
}

// DefaultServices are those that every cluster has unless they are disabled, -rw first.
func DefaultServices(c *v1alpha1.Cluster, primary string) []*corev1.Service {
	out := []*corev1.Service{ReadWriteService(c, primary)}
	for _, selector := range []v1alpha1.ServiceSelector{v1alpha1.SelectReadOnly, v1alpha1.SelectRead} {
		if !slices.Contains(managedServices(c).DisabledDefaultServices, selector) {
			out = append(out, defaultService(c, selector, ""))
		}
	}
	return out
}

// AdditionalServices are those that the user asks for besides.
func AdditionalServices(c *v1alpha1.Cluster, primary string) []*corev1.Service {
	var out []*corev1.Service
	for _, a := range managedServices(c).Additional {
		out = append(out, additionalService(c, &a, primary))
	}
	return out
}

// AsksForService reports whether a cluster is to have a Service of a name that leads to a role.
func AsksForService(c *v1alpha1.Cluster, name string) bool {
	return slices.ContainsFunc(Services(c, ""), func(s *corev1.Service) bool { return s.Name == name })
}

// ServiceNames are those under which clients may reach an instance, now or when a default
// Service that is disabled is made after all.
func ServiceNames(c *v1alpha1.Cluster, instance string) []string {
	names := Names(c.Name)
	out := []string{instance, names.ReadWrite(), names.ReadOnly(), names.Read()}
	for _, a := range managedServices(c).Additional {
		out = append(out, names.Service(a.Name))
	}
	return out
}

// WriteServices are those of Services that lead to the primary.
func WriteServices(c *v1alpha1.Cluster, primary string) []*corev1.Service {
	return slices.DeleteFunc(Services(c, primary), func(s *corev1.Service) bool { return !LeadsToPrimary(s) })
}

// ReadWriteService routes to the primary by its name, so that one write moves
// all traffic: moving a role label from one Pod to another takes two endpoint
// updates, of which kube-proxy holds the second back for a second.
func ReadWriteService(c *v1alpha1.Cluster, primary string) *corev1.Service {
	return defaultService(c, v1alpha1.SelectReadWrite, primary)
}

// LeadsToPrimary reports whether the Service selects one instance by its name.
func LeadsToPrimary(s *corev1.Service) bool { return s.Spec.Selector[v1alpha1.LabelInstance] != "" }

// Lead has a Service for writes lead to an instance; nowhere if it is "".
func Lead(s *corev1.Service, primary string) {
	s.Spec.Selector[v1alpha1.LabelInstance] = leadTo(primary)
}

func leadTo(primary string) string { return cmp.Or(primary, noInstance) }

// RoutedTo is the instance that a Service for writes selects; "" when there is none.
func RoutedTo(s *corev1.Service) string {
	if name := s.Spec.Selector[v1alpha1.LabelInstance]; name != noInstance {
		return name
	}
	return ""
}

// IsRoleService tells a Service that leads to a role from those of the instances.
func IsRoleService(s *corev1.Service) bool { return s.Labels[labelComponent] == componentCluster }

func managedServices(c *v1alpha1.Cluster) v1alpha1.ManagedServices {
	if c.Spec.Managed == nil || c.Spec.Managed.Services == nil {
		return v1alpha1.ManagedServices{}
	}
	return *c.Spec.Managed.Services
}

func defaultService(c *v1alpha1.Cluster, selector v1alpha1.ServiceSelector, primary string) *corev1.Service {
	s := service(c, Names(c.Name).Service(string(selector)), selects(selector, primary))
	layOn(c, s, managedServices(c).Template)
	return s
}

func additionalService(c *v1alpha1.Cluster, a *v1alpha1.AdditionalService, primary string) *corev1.Service {
	s := service(c, Names(c.Name).Service(a.Name), selects(a.SelectorType, primary))
	if a.UpdateStrategy == v1alpha1.UpdateReplace {
		s.Labels, s.Annotations = ownLabels(c, componentCluster), nil
	}
	layOn(c, s, a.ServiceTemplate)
	return s
}

// selects are the labels of whom a Service leads to.
func selects(selector v1alpha1.ServiceSelector, primary string) map[string]string {
	switch selector {
	case v1alpha1.SelectReadWrite:
		return map[string]string{v1alpha1.LabelInstance: leadTo(primary)}
	case v1alpha1.SelectReadOnly:
		return map[string]string{v1alpha1.LabelRole: v1alpha1.RoleReplica, v1alpha1.LabelRoutable: "true"}
	default:
		return map[string]string{v1alpha1.LabelRoutable: "true"}
	}
}

func service(c *v1alpha1.Cluster, name string, selector map[string]string) *corev1.Service {
	selector[v1alpha1.LabelCluster] = c.Name
	return &corev1.Service{
		TypeMeta:   typeMeta("v1", "Service"),
		ObjectMeta: meta(c, name, componentCluster),
		Spec: corev1.ServiceSpec{
			Selector: selector,
			Ports:    []corev1.ServicePort{port("mysql", layout.MySQLPort)},
		},
	}
}

// layOn lays what a user says about a Service on it; the operator's own labels win.
func layOn(c *v1alpha1.Cluster, s *corev1.Service, t *v1alpha1.ServiceTemplate) {
	if t == nil {
		return
	}
	maps.Copy(s.Labels, usersOf(t.Metadata.Labels))
	maps.Copy(s.Labels, ownLabels(c, componentCluster))
	for key, value := range usersOf(t.Metadata.Annotations) {
		annotate(&s.ObjectMeta, key, value)
	}
	s.Spec.Type = t.Spec.Type
	s.Spec.ExternalTrafficPolicy = t.Spec.ExternalTrafficPolicy
	s.Spec.SessionAffinity = t.Spec.SessionAffinity
	s.Spec.LoadBalancerSourceRanges = t.Spec.LoadBalancerSourceRanges
	s.Spec.ExternalName = t.Spec.ExternalName
	s.Spec.HealthCheckNodePort = t.Spec.HealthCheckNodePort
}

// InstanceService gives one instance a name in DNS. It publishes the instance
// before it is ready, for the operator must reach its manager, and a clone its
// donor, regardless.
func InstanceService(c *v1alpha1.Cluster, instance string) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   typeMeta("v1", "Service"),
		ObjectMeta: instanceMeta(c, instance, instance),
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true,
			Selector: map[string]string{
				v1alpha1.LabelCluster:  c.Name,
				v1alpha1.LabelInstance: instance,
				labelComponent:         componentInstance,
			},
			Ports: []corev1.ServicePort{
				port("mysql", layout.MySQLPort),
				port("mysql-admin", layout.AdminPort),
				port("mysql-group", layout.GroupPort),
				port("control", layout.ControlPort),
				port("metrics", layout.MetricsPort),
			},
		},
	}
}

func port(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{
		Name:       name,
		Port:       number,
		Protocol:   corev1.ProtocolTCP,
		TargetPort: intstr.FromString(name),
	}
}
