package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
)

// TestABackupIsWhatTheOperatorRecorded: the annotation goes before the status, and the spec before
// both. Of a Backup without, as an earlier release began it, the status is believed.
func TestABackupIsWhatTheOperatorRecorded(t *testing.T) {
	in := func(bucket string) *v1alpha1.ObjectStoreSpec { return &v1alpha1.ObjectStoreSpec{Bucket: bucket} }
	of := func(how func(*v1alpha1.Backup)) *v1alpha1.Backup {
		b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "uid"}}
		b.Spec.Cluster.Name = "db"
		b.Status = v1alpha1.BackupStatus{BackupID: "said", InstanceName: "db-9", DestinationPath: "s3://said/db",
			ObjectStore: in("said")}
		if how != nil {
			how(b)
		}
		return b
	}
	recorded := func(b *v1alpha1.Backup) {
		if err := (Record{ID: "id", Instance: "db-2", Store: in("store")}).WriteTo(b); err != nil {
			t.Fatal(err)
		}
	}
	said := Record{UID: "uid", ID: "said", Instance: "db-9", Store: in("said"), Path: "s3://said/db"}
	for name, c := range map[string]struct {
		b    *v1alpha1.Backup
		want Record
	}{
		"recorded": {of(recorded), Record{UID: "uid", ID: "id", Instance: "db-2", Store: in("store"),
			Path: "s3://store/db"}},
		"of an earlier release": {of(nil), said},
		"copied from another": {of(func(b *v1alpha1.Backup) {
			recorded(b)
			b.UID = "another"
		}), Record{UID: "another", ID: "said", Instance: "db-9", Store: in("said"), Path: "s3://said/db"}},
		"with a store of its own": {of(func(b *v1alpha1.Backup) { b.Spec.ObjectStore = in("own") }),
			Record{UID: "uid", ID: "said", Instance: "db-9", Store: in("own"), Path: "s3://own/db"}},
		"that never began": {of(func(b *v1alpha1.Backup) {
			b.Status, b.Spec.ObjectStore = v1alpha1.BackupStatus{}, in("own")
		}), Record{UID: "uid"}},
		"that is not to be read": {of(func(b *v1alpha1.Backup) {
			b.Annotations = map[string]string{v1alpha1.AnnotationBackupRecord: "{"}
		}), said},
	} {
		if diff := cmp.Diff(c.want, RecordOf(c.b)); diff != "" {
			t.Errorf("a Backup %s (-want +got):\n%s", name, diff)
		}
	}
}
