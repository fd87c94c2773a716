package resources

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
)

// Record is what the operator decided about a Backup before there was a Job: to which store it
// goes and by which Secrets, and what it is there. The operator keeps it in an annotation. The
// status says the same to people, and the Job may patch the status: who has the Job's token must
// not choose by it which Secrets are copied, or what is removed.
type Record struct {
	// UID of the Backup: what was copied with a manifest is of another.
	UID types.UID `json:"uid"`
	// ID is the backup's name in the store.
	ID string `json:"backupId"`
	// Instance that is backed up.
	Instance string `json:"instanceName"`
	// Store it lies in, nil if nothing was decided yet.
	Store *v1alpha1.ObjectStoreSpec `json:"objectStore"`
	// PullSecrets of the Cluster, for the Job that removes the data when the Cluster is gone. Its security
	// contexts are not kept: the annotation is in the hands of whoever may change Backups, and what
	// refuses such contexts looks at Clusters.
	PullSecrets []v1alpha1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// Path is where it lies, for people and to be compared.
	Path string `json:"-"`
}

// RecordOf is what was decided about a Backup. One that an earlier release began has no
// annotation: of it, the status is believed. An object store in the spec, which cannot be
// changed, is where it lies in any case.
func RecordOf(b *v1alpha1.Backup) Record {
	var r Record
	err := json.Unmarshal([]byte(b.Annotations[v1alpha1.AnnotationBackupRecord]), &r)
	if err != nil || r.UID != b.UID || r.ID == "" || r.Store == nil {
		r = Record{UID: b.UID, ID: b.Status.BackupID, Instance: b.Status.InstanceName, Store: b.Status.ObjectStore,
			Path: b.Status.DestinationPath}
	} else {
		r.Path = StorePath(r.Store, b.Spec.Cluster.Name)
	}
	if r.Store != nil && b.Spec.ObjectStore != nil {
		r.Store, r.Path = b.Spec.ObjectStore, StorePath(b.Spec.ObjectStore, b.Spec.Cluster.Name)
	}
	return r
}

// WriteTo writes the record into the Backup's annotation.
func (r Record) WriteTo(b *v1alpha1.Backup) error {
	r.UID = b.UID
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if b.Annotations == nil {
		b.Annotations = map[string]string{}
	}
	b.Annotations[v1alpha1.AnnotationBackupRecord] = string(text)
	return nil
}
