package plugin

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

// shopCluster is a Cluster with all that a restore has to look at.
func shopCluster() *v1alpha1.Cluster {
	c := archived()
	c.Annotations = map[string]string{v1alpha1.AnnotationReinit: "demo-2"}
	c.Spec.Bootstrap = &v1alpha1.BootstrapSpec{InitDB: &v1alpha1.InitDBSpec{Database: "shop", Owner: "keeper",
		Secret: &v1alpha1.LocalObjectReference{Name: "keeper"}, CharacterSet: "utf8mb4",
		PostInitSQL: []string{"CREATE TABLE t (i INT)"}}}
	c.Spec.ExternalClusters = []v1alpha1.ExternalCluster{{Name: "ancestor", ObjectStore: storeSpec()}}
	c.Spec.Replica = &v1alpha1.ReplicaSpec{Source: "ancestor"}
	c.Spec.FailoverPolicy = &v1alpha1.FailoverPolicy{PreferredPrimary: []string{"demo-1"}}
	c.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone",
		WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelCluster: "demo"}}}}
	c.Spec.Managed = &v1alpha1.ManagedSpec{Services: &v1alpha1.ManagedServices{}}
	return c
}

func restoring(t *testing.T, w restoreWish, apply bool, objects ...client.Object) (*backupScene, error) {
	t.Helper()
	s := newBackupScene(t, objects)
	if err := w.check("demo", now); err != nil {
		return s, err
	}
	return s, (&restorer{s.caller}).restore(context.Background(), w, apply)
}

func TestTheManifestOfARestore(t *testing.T) {
	for file, w := range map[string]restoreWish{
		"restore-time.yaml": {name: "fresh", to: "10m"},
		"restore-gtid.yaml": {name: "fresh", gtid: uuid1 + ":17", exclusive: true,
			backupID: "20260301T000000Z-1a2b3c4d"},
		"restore-backup.yaml":    {name: "fresh", backup: "one", immediate: true},
		"restore-all.yaml":       {name: "fresh"},
		"restore-too-early.yaml": {name: "fresh", to: "2026-02-01T00:00:00+01:00"},
	} {
		t.Run(file, func(t *testing.T) {
			s, err := restoring(t, w, false, shopCluster(), completed("one", 20*time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			golden(t, file, s.out.String())
			if all := (&v1alpha1.ClusterList{}); s.client.List(context.Background(), all) != nil ||
				len(all.Items) != 1 {
				t.Error("something was created")
			}
		})
	}
}

func TestARestoreIsAppliedAsItIsPrinted(t *testing.T) {
	s, err := restoring(t, restoreWish{name: "fresh", to: "10m"}, true, shopCluster(), completed("one", 20*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	c := &v1alpha1.Cluster{}
	if err := s.client.Get(context.Background(), types.NamespacedName{Namespace: "shop",
		Name: "fresh"}, c); err != nil {
		t.Fatal(err)
	}
	from := c.Spec.Bootstrap.Recovery
	if from.Source != "demo" || from.RecoveryTarget.TargetTime != "2026-03-01T02:50:00Z" ||
		c.Spec.ExternalClusters[0].ObjectStore.Bucket != "backups" || c.Spec.Replica != nil {
		t.Errorf("it begins with %+v of %+v", from, c.Spec.ExternalClusters)
	}
	if !strings.Contains(s.out.String(), "Created the Cluster fresh. To follow: kubectl cnmsql status fresh -n shop") {
		t.Error(s.out.String())
	}
}

func TestARestoreWarnsOfWhatItCannotKnow(t *testing.T) {
	for want, objects := range map[string][]client.Object{
		"Warning: Kubernetes has no Completed Backup of demo": {archived()},
		"Warning: spec.backup.continuousArchiving of demo is not enabled": {stored(),
			completed("one", time.Hour)},
		"Warning: that moment is not among those that Kubernetes knows to be restorable": {archived(),
			completed("one", 3*time.Minute)},
		"Warning: the archive is not well: nothing is archived: the store refuses the cred": {archiveFails(),
			completed("one", time.Hour)},
	} {
		s, err := restoring(t, restoreWish{name: "fresh", to: "10m"}, false, objects...)
		if err != nil || !strings.Contains(s.out.String(), "# "+want) {
			t.Errorf("want %q, got %v and\n%s", want, err, s.out.String())
		}
	}
}

// recreated is the Cluster, made again half an hour ago under the name of one that was deleted.
func recreated() *v1alpha1.Cluster {
	c := archived()
	c.CreationTimestamp = metav1.NewTime(now.Add(-30 * time.Minute))
	return c
}

// TestBackupsOfAnEarlierClusterAreNotTakenForItsOwn: they have its name, and nothing of its data.
func TestBackupsOfAnEarlierClusterAreNotTakenForItsOwn(t *testing.T) {
	theirs := completed("theirs", time.Hour)
	list := listOf(t, recreated(), theirs)
	if !list.Backups[0].OfEarlier || list.Window.From != nil || !strings.Contains(list.Window.Text, "earlier Cluster") {
		t.Errorf("the list says %+v, %+v", list.Backups, list.Window)
	}
	f := healthy()
	f.Cluster, f.Backups = recreated(), []v1alpha1.Backup{*theirs}
	if short := backupsInShort(f); short.Last != "" || short.Earlier != "theirs" {
		t.Errorf("the status says %+v", short)
	}
	s, err := restoring(t, restoreWish{name: "fresh"}, true, recreated(), theirs)
	if err == nil || !strings.Contains(err.Error(), "--backup theirs") {
		t.Errorf("a restore says %v and\n%s", err, s.out.String())
	}
	s, err = restoring(t, restoreWish{name: "fresh", backup: "theirs"}, false, recreated(), theirs)
	if err != nil || !strings.Contains(s.out.String(), "# Warning: the Backup theirs is of an earlier Cluster") {
		t.Errorf("who asks for it is told %v and\n%s", err, s.out.String())
	}
	mine := completed("mine", 10*time.Minute)
	if _, err := restoring(t, restoreWish{name: "fresh"}, true, recreated(), theirs, mine); err != nil {
		t.Errorf("with one of its own: %v", err)
	}
}

// TestANameThatADeletedClusterHadIsRefused: it has left volumes, beside which nothing is restored,
// or backups, at whose place nothing is stored.
func TestANameThatADeletedClusterHadIsRefused(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "fresh-1",
		Labels: map[string]string{v1alpha1.LabelCluster: "fresh"}}}
	used := completed("before", time.Hour)
	used.Spec.Cluster.Name = "fresh"
	for want, left := range map[string]client.Object{
		"there are volumes of a deleted Cluster fresh, for example fresh-1": claim,
		"there are Backups of a deleted Cluster fresh, for example before":  used,
	} {
		_, err := restoring(t, restoreWish{name: "fresh"}, true, stored(), completed("one", time.Hour), left)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestRestoresThatAreRefused(t *testing.T) {
	other := completed("other", time.Hour)
	other.Spec.Cluster.Name = "another"
	there := stored()
	there.Name = "fresh"
	all := []client.Object{stored(), completed("one", time.Hour), failed("bad", time.Hour), other}
	for want, x := range map[string]struct {
		w       restoreWish
		objects []client.Object
	}{
		"--name is needed":                           {restoreWish{}, all},
		"a Cluster is not set back in place":         {restoreWish{name: "demo"}, all},
		"--name 7up cannot be the name of a Cluster": {restoreWish{name: "7up"}, all},
		"both name a backup": {restoreWish{name: "fresh",
			backup: "one", backupID: "x"}, all},
		"--backup-id a/b is none": {restoreWish{name: "fresh",
			backupID: "a/b"}, all},
		"give one of them, or none": {restoreWish{name: "fresh",
			to: "10m", immediate: true}, all},
		"--exclusive goes with --gtid": {restoreWish{name: "fresh",
			exclusive: true}, all},
		"--to yesterday is no moment": {restoreWish{name: "fresh",
			to: "yesterday"}, all},
		"--to 2026-02-01 10:00:00 is no moment": {restoreWish{name: "fresh",
			to: "2026-02-01 10:00:00"}, all},
		"--to -10m is no moment": {restoreWish{name: "fresh",
			to: "-10m"}, all},
		"is in the future (it is 2026-03-01T03:00:00Z now": {restoreWish{name: "fresh",
			to: "2026-03-01T04:00:00Z"}, all},
		"--gtid nonsense is no GTID set": {restoreWish{name: "fresh",
			gtid: "nonsense"}, all},
		"there is no Cluster demo in namespace shop to copy the spec from": {restoreWish{name: "fresh"}, nil},
		"spec.bootstrap.recovery.source: demo; docs/restore.md shows it":   {restoreWish{name: "fresh"}, nil},
		"cluster demo names no object store in spec.backup": {restoreWish{name: "fresh"},
			[]client.Object{healthy().Cluster}},
		"there is no Backup two in namespace shop": {restoreWish{name: "fresh",
			backup: "two"}, all},
		"the Backup other is of Cluster another and not of demo": {restoreWish{name: "fresh",
			backup: "other"}, all},
		"the data of the Backup gone are not in the store any more (it had expired)": {restoreWish{name: "fresh",
			backup: "gone"}, append(all[:len(all):len(all)], expired("gone", 21*time.Hour))},
		"the Backup bad is Failed, and only a Completed one": {restoreWish{name: "fresh",
			backup: "bad"}, all},
		"is before the Backup one began (2026-03-01 02:00:00Z)": {restoreWish{name: "fresh",
			backup: "one", to: "2h"}, all},
		"there is a Cluster fresh already": {restoreWish{name: "fresh"},
			[]client.Object{stored(), there}},
	} {
		s, err := restoring(t, x.w, true, x.objects...)
		mustFail(t, err, want)
		if s.out.String() != "" {
			t.Errorf("%s: it says %q", want, s.out.String())
		}
	}
}

func TestOfTheFormerClusterOnlyItsSpecIsCopied(t *testing.T) {
	c := shopCluster()
	c.Spec.Replication.GroupReplication = &v1alpha1.GroupReplicationSpec{GroupName: "of the former group"}
	fresh := restored(c, restoreWish{name: "fresh"})
	if name := fresh.Spec.Replication.GroupReplication.GroupName; name != "" {
		t.Errorf("the group is to have the former one's name: %s", name)
	}
	if len(fresh.Annotations) != 0 || fresh.UID != "" || fresh.Status.CurrentPrimary != "" {
		t.Errorf("copied: %+v %+v", fresh.ObjectMeta, fresh.Status)
	}
	if fresh.Spec.FailoverPolicy.PreferredPrimary[0] != "fresh-1" ||
		c.Spec.FailoverPolicy.PreferredPrimary[0] != "demo-1" {
		t.Error("the preferred primary is not the new Cluster's")
	}
	if c.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels[v1alpha1.LabelCluster] != "demo" {
		t.Error("the former Cluster was changed")
	}
}

func TestTheNameOfAClusterIsNotTakenForACommand(t *testing.T) {
	for line, want := range map[string]string{"backup demo": "backup", "backup list demo": "list",
		"backup follow one": "follow", "restore demo": "restore"} {
		cmd, rest, err := Command().Find(strings.Fields(line))
		if err != nil || cmd.Name() != want || len(rest) != 1 || cmd.Args(cmd, rest) != nil {
			t.Errorf("%s is %s with %v, %v", line, cmd.Name(), rest, err)
		}
	}
}
