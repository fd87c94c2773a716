package resources

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core/verify"
)

// RestoredApplication names the database and the owner that the data of a Cluster have for
// the application; nil when they are the default ones.
func RestoredApplication(c *v1alpha1.Cluster) *v1alpha1.InitDBSpec {
	if c.Spec.Bootstrap == nil || c.Spec.Bootstrap.InitDB == nil {
		return nil
	}
	from := c.Spec.Bootstrap.InitDB.DeepCopy()
	if from.Database == "" && from.Owner == "" && from.Secret == nil {
		return nil
	}
	return &v1alpha1.InitDBSpec{Database: from.Database, Owner: from.Owner, Secret: from.Secret}
}

// ThrowAway is the Cluster into which the newest backup of a Cluster is restored to see
// whether that works: one instance of the same server, which goes with its volume. Of the
// Cluster's spec it has what the data and the Pod need, and nothing by which a client could
// be led to it. It is restored to a set of GTIDs; to all that was archived if that is empty.
func ThrowAway(c *v1alpha1.Cluster, target string) *v1alpha1.Cluster {
	from := c.Spec.DeepCopy()
	out := &v1alpha1.Cluster{TypeMeta: typeMeta(v1alpha1.GroupVersion.String(), "Cluster"),
		ObjectMeta: metav1.ObjectMeta{
			Name: verify.CopyName(c.Name), Namespace: c.Namespace,
			Labels: map[string]string{v1alpha1.LabelVerifies: c.Name},
			Annotations: map[string]string{
				v1alpha1.AnnotationThrowAway: "made to try the backups of Cluster " + c.Name +
					"; it is deleted with its volume when that has ended. Do not use it"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c,
				v1alpha1.GroupVersion.WithKind("Cluster"))},
		}}
	s := &out.Spec
	s.Description = "A throw-away Cluster by which the backups of " + c.Name + " are tried"
	s.Instances = 1
	s.ImageName = Image(c, "")
	s.ImagePullPolicy, s.ImagePullSecrets = from.ImagePullPolicy, from.ImagePullSecrets
	s.Storage = from.Storage
	s.Storage.WhenDeleted, s.Storage.WhenScaled = v1alpha1.DeleteVolume, v1alpha1.DeleteVolume
	s.Resources = from.Resources
	s.MySQL = throwAwayServer(from.MySQL)
	s.Bootstrap = &v1alpha1.BootstrapSpec{InitDB: RestoredApplication(c),
		Recovery: &v1alpha1.RecoverySpec{Source: c.Name}}
	if target != "" {
		s.Bootstrap.Recovery.RecoveryTarget = &v1alpha1.RecoveryTarget{TargetGTID: target}
	}
	if b := from.Backup; b != nil {
		s.ExternalClusters = []v1alpha1.ExternalCluster{{Name: c.Name, ObjectStore: b.ObjectStore}}
		s.Backup = &v1alpha1.BackupDefaults{MaxBytesPerSecond: b.MaxBytesPerSecond}
	}
	s.EnablePDB = new(false)
	s.Affinity, s.PriorityClassName, s.SchedulerName = from.Affinity, from.PriorityClassName, from.SchedulerName
	s.Env, s.PodSecurityContext, s.SecurityContext = from.Env, from.PodSecurityContext, from.SecurityContext
	s.MaxStartDelay, s.LogLevel = from.MaxStartDelay, from.LogLevel
	if in := from.InheritedMetadata; in != nil {
		// Labels could have Services of the user's lead to it.
		s.InheritedMetadata = &v1alpha1.InheritedMetadata{Annotations: in.Annotations}
	}
	return out
}

// throwAwayServer has the server's parameters, and nothing that waits for others. Events of
// the data, by which applications write, do not run: the rows are to stay what they were.
func throwAwayServer(from v1alpha1.MySQLSpec) v1alpha1.MySQLSpec {
	from.SemiSync = nil
	for name := range from.Parameters {
		if strings.ReplaceAll(strings.ToLower(name), "-", "_") == "event_scheduler" {
			delete(from.Parameters, name)
		}
	}
	if from.Parameters == nil {
		from.Parameters = map[string]string{}
	}
	from.Parameters["event_scheduler"] = "OFF"
	return from
}
