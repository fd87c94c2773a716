package resources

import (
	"maps"
	"testing"

	"cnmsql.co/api/v1alpha1"
)

// TestNobodyInheritsTheOperatorsNames holds that no label of the spec makes a Pod one that a Service leads to, or the
// instance of another cluster. The schema refuses such names; an object of before may have them.
func TestNobodyInheritsTheOperatorsNames(t *testing.T) {
	plain, c := cluster(t, "minimal"), cluster(t, "minimal")
	c.Spec.InheritedMetadata = &v1alpha1.InheritedMetadata{
		Labels: map[string]v1alpha1.LabelValue{v1alpha1.LabelRole: v1alpha1.RolePrimary, v1alpha1.LabelRoutable: "true",
			v1alpha1.LabelCluster: "other", labelInstance: "other", "team": "a"},
		Annotations: map[string]string{"cnmsql.cnmsql.co/x": "y", "mysql.cnmsql.co/kept": "now", "team": "b"},
	}
	c.Spec.Managed = &v1alpha1.ManagedSpec{Services: &v1alpha1.ManagedServices{Template: &v1alpha1.ServiceTemplate{
		Metadata: v1alpha1.ServiceTemplateMetadata{Labels: map[string]string{v1alpha1.LabelRole: "x", "pool": "p"},
			Annotations: map[string]string{"mysql.cnmsql.co/kept": "now", "pool": "q"}}}}}
	want, got := Pod(plain, "db-1", options), Pod(c, "db-1", options)
	want.Labels["team"] = "a"
	if !maps.Equal(got.Labels, want.Labels) || got.Annotations["team"] != "b" {
		t.Errorf("the Pod has %v, want %v, and the annotations %v", got.Labels, want.Labels, got.Annotations)
	}
	s := ReadWriteService(c, "db-1")
	if s.Labels["pool"] != "p" || s.Labels[v1alpha1.LabelRole] != "" || s.Annotations["pool"] != "q" {
		t.Errorf("the Service has %v and %v", s.Labels, s.Annotations)
	}
	for _, key := range []string{"mysql.cnmsql.co/kept", "cnmsql.cnmsql.co/x"} {
		if s.Annotations[key] != "" || got.Annotations[key] != "" {
			t.Errorf("%s is inherited: %v, %v", key, s.Annotations, got.Annotations)
		}
	}
}
