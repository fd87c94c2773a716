package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/api/v1alpha1"
)

func TestPortsAreReservedBesideWhatAUserSets(t *testing.T) {
	mine := corev1.Sysctl{Name: "net.ipv4.tcp_syncookies", Value: "1"}
	own := corev1.Sysctl{Name: reservedPorts, Value: "3306,33061,33062,40000"}
	for _, s := range []struct {
		set, want []corev1.Sysctl
	}{
		{nil, []corev1.Sysctl{{Name: reservedPorts, Value: "3306,8080,8081,9187,33061,33062"}}},
		{[]corev1.Sysctl{mine}, []corev1.Sysctl{mine, {Name: reservedPorts, Value: "3306,8080,8081,9187,33061,33062"}}},
		{[]corev1.Sysctl{own}, []corev1.Sysctl{own}},
	} {
		c := &v1alpha1.Cluster{}
		c.Spec.PodSecurityContext = &corev1.PodSecurityContext{Sysctls: s.set}
		got := podSecurity(c).Sysctls
		if len(got) != len(s.want) {
			t.Fatalf("%v becomes %v, and not %v", s.set, got, s.want)
		}
		for i := range got {
			if got[i] != s.want[i] {
				t.Errorf("%v becomes %v, and not %v", s.set, got, s.want)
			}
		}
		if len(c.Spec.PodSecurityContext.Sysctls) != len(s.set) {
			t.Errorf("the Cluster was changed: %v", c.Spec.PodSecurityContext.Sysctls)
		}
	}
}
