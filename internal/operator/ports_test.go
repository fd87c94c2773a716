package operator

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// A real API server refuses to have two ports of one name, as an
// apply beside a changed number would. CNMSQL_KUBE_BIN names a directory with etcd and kube-apiserver.
func TestARealAPIServerTakesPortsThatGetTheirNumbersBack(t *testing.T) {
	server := realAPIServer(t)
	c := aNewCluster()
	c.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "ports"}
	c.Spec.Managed = &v1alpha1.ManagedSpec{Services: &v1alpha1.ManagedServices{
		Template: &v1alpha1.ServiceTemplate{Spec: v1alpha1.ServiceTemplateSpec{Type: corev1.ServiceTypeNodePort}}}}
	must(t, server.Create(t.Context(), c))
	p := newPrerequisites(server, server)
	bring := func(primary string) *corev1.Service {
		t.Helper()
		rw := resources.ReadWriteService(c, primary)
		must(t, p.apply(t.Context(), c, rw))
		must(t, p.apply(t.Context(), c, resources.InstanceService(c, "ports-1")))
		must(t, server.Get(t.Context(), client.ObjectKeyFromObject(rw), rw))
		return rw
	}
	change := func(name string, change func([]corev1.ServicePort) []corev1.ServicePort) {
		t.Helper()
		s := &corev1.Service{}
		must(t, server.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, s))
		s.Spec.Ports = change(s.Spec.Ports)
		must(t, server.Update(t.Context(), s))
	}
	ours := bring("ports-1").Spec.Ports[0]

	theirs := corev1.ServicePort{Name: "theirs", Port: 33060, Protocol: corev1.ProtocolTCP,
		TargetPort: intstr.FromInt32(33060)}
	for what, edit := range map[string]func([]corev1.ServicePort) []corev1.ServicePort{
		"another number": func(ports []corev1.ServicePort) []corev1.ServicePort {
			ports[0].Port, ports[0].TargetPort = 3307, intstr.FromInt32(3307)
			return append(ports, theirs)
		},
		"the number under another name": func(ports []corev1.ServicePort) []corev1.ServicePort {
			ports[0].Port, ports[0].TargetPort = 3307, intstr.FromInt32(3307)
			old := ours
			old.Name, old.NodePort = "old", 0
			return append(ports, old, theirs)
		},
	} {
		change("ports-rw", edit)
		change("ports-1", func(ports []corev1.ServicePort) []corev1.ServicePort {
			ports[0].Port = 3307
			return ports
		})
		is := bring("ports-2")
		if i := slices.Index(is.Spec.Ports, ours); i < 0 || resources.RoutedTo(is) != "ports-2" {
			t.Errorf("%s: it leads to %s by %+v, want %+v", what, resources.RoutedTo(is), is.Spec.Ports, ours)
		}
		if len(is.Spec.Ports) != 2 || portNamed(is.Spec.Ports, theirs) < 0 {
			t.Errorf("%s: somebody's own port is gone, or the changed one stays: %+v", what, is.Spec.Ports)
		}
		change("ports-rw", func([]corev1.ServicePort) []corev1.ServicePort { return []corev1.ServicePort{ours} })
	}
}
