package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
)

// noInstance is no instance's name, for they all end in a number.
const noInstance = "none"

// ReadWriteService routes to the primary by its name, so that one write moves
// all traffic: moving a role label from one Pod to another takes two endpoint
// updates, of which kube-proxy holds the second back for a second. With primary
// "" it routes nowhere.
func ReadWriteService(c *v1alpha1.Cluster, primary string) *corev1.Service {
	if primary == "" {
		primary = noInstance
	}
	return service(c, Names(c.Name).ReadWrite(), map[string]string{v1alpha1.LabelInstance: primary})
}

// RoutedTo is the instance that a -rw Service selects; "" when there is none.
func RoutedTo(s *corev1.Service) string {
	if name := s.Spec.Selector[v1alpha1.LabelInstance]; name != noInstance {
		return name
	}
	return ""
}

// ReadOnlyService routes to the replicas.
func ReadOnlyService(c *v1alpha1.Cluster) *corev1.Service {
	return service(c, Names(c.Name).ReadOnly(), map[string]string{
		v1alpha1.LabelRole:     v1alpha1.RoleReplica,
		v1alpha1.LabelRoutable: "true",
	})
}

// ReadService routes to every instance.
func ReadService(c *v1alpha1.Cluster) *corev1.Service {
	return service(c, Names(c.Name).Read(), map[string]string{v1alpha1.LabelRoutable: "true"})
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
