package plugin

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// restored is a new Cluster with the spec of another one, that begins with its data. The
// new name has a directory of its own in the object store.
func restored(c *v1alpha1.Cluster, w restoreWish) *v1alpha1.Cluster {
	out := &v1alpha1.Cluster{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Cluster"},
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: w.name}, Spec: *c.Spec.DeepCopy()}
	recovery := &v1alpha1.RecoverySpec{RecoveryTarget: w.recoveryTarget()}
	out.Spec.ImageName = resources.Image(c, "") // the server that the data are of
	out.Spec.ExternalClusters, out.Spec.Replica = nil, nil
	if w.backup != "" {
		recovery.Backup = &v1alpha1.BackupReference{Name: w.backup}
	} else {
		recovery.Source, recovery.BackupID = c.Name, w.backupID
		out.Spec.ExternalClusters = []v1alpha1.ExternalCluster{{Name: c.Name,
			ObjectStore: c.Spec.Backup.ObjectStore.DeepCopy()}}
	}
	out.Spec.Bootstrap = &v1alpha1.BootstrapSpec{InitDB: resources.RestoredApplication(c), Recovery: recovery}
	if g := out.Spec.Replication.GroupReplication; g != nil {
		g.GroupName = "" // which the former group may go on with
	}
	rename(&out.Spec, c.Name, w.name)
	return out
}

// rename leads what names the former Cluster's instances or Pods to the new one's.
func rename(spec *v1alpha1.ClusterSpec, before, after string) {
	if p := spec.FailoverPolicy; p != nil {
		p.PreferredPrimary = slices.Clone(p.PreferredPrimary)
		for i, name := range p.PreferredPrimary {
			if number, is := strings.CutPrefix(name, before+"-"); is {
				p.PreferredPrimary[i] = after + "-" + number
			}
		}
	}
	for i := range spec.TopologySpreadConstraints {
		if s := spec.TopologySpreadConstraints[i].LabelSelector; s != nil &&
			s.MatchLabels[v1alpha1.LabelCluster] == before {
			s.MatchLabels[v1alpha1.LabelCluster] = after
		}
	}
}

// yamlObject is a Cluster as it is printed and created: without what only the API server
// writes.
type yamlObject struct{ *unstructured.Unstructured }

func manifestOf(c *v1alpha1.Cluster) (yamlObject, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		return yamlObject{}, fmt.Errorf("writing the manifest of Cluster %s: %w", c.Name, err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return yamlObject{&unstructured.Unstructured{Object: content}}, nil
}

func (o yamlObject) yaml() (string, error) {
	text, err := yaml.Marshal(o.Object)
	return string(text), err
}
