package plugin

import (
	"context"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

// leaving is a Completed Backup that is being deleted, and kept by finalizers.
func leaving(finalizers ...string) *v1alpha1.Backup {
	b := completed("leaving", 0)
	asked := metav1.NewTime(now)
	b.DeletionTimestamp, b.Finalizers = &asked, finalizers
	return b
}

func TestABackupIsForgotten(t *testing.T) {
	b := leaving(v1alpha1.FinalizerStoredBackup)
	b.UID = "its-uid"
	s := newBackupScene(t, []client.Object{stored(), b,
		removalOf("leaving-remove", v1alpha1.AnnotationBackupUID, "its-uid")})
	if err := s.forgetBackup(context.Background(), "leaving"); err != nil {
		t.Fatal(err)
	}
	if text := s.out.String(); !strings.Contains(text, "stay: s3://backups/prod/demo/base/20260301T000000Z-1a2b3c4d") ||
		!strings.Contains(text, "restore demo --name NEW --backup-id 20260301T000000Z-1a2b3c4d -n shop\n") ||
		!strings.Contains(text, "manifest.json first") {
		t.Error(text)
	}
	for name, obj := range map[string]client.Object{"leaving": &v1alpha1.Backup{}, "leaving-remove": &batchv1.Job{}} {
		err := s.client.Get(context.Background(), types.NamespacedName{Namespace: "shop", Name: name}, obj)
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}

// TestAJobOfSomebodyElseStays looks whether a Job that has the name of a removal, and is none, is left alone.
func TestAJobOfSomebodyElseStays(t *testing.T) {
	b := leaving(v1alpha1.FinalizerStoredBackup)
	b.UID = "its-uid"
	job := removalOf("leaving-remove", v1alpha1.AnnotationBackupUID, "another")
	s := newBackupScene(t, []client.Object{b, job})
	if err := s.forgetBackup(context.Background(), "leaving"); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Get(context.Background(), client.ObjectKeyFromObject(job), job); err != nil {
		t.Error(err)
	}
}

// removalOf is the Job that removes what an object has in the store.
func removalOf(name, annotation, uid string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		Annotations: map[string]string{annotation: uid}}}
}

// TestNoCommandIsToldThatLooksInAnotherStore holds where the Cluster's is another one by now, or there is none.
func TestNoCommandIsToldThatLooksInAnotherStore(t *testing.T) {
	moved := stored()
	moved.Spec.Backup.ObjectStore.Bucket = "others"
	for name, objects := range map[string][]client.Object{"moved": {moved}, "gone": nil} {
		s := newBackupScene(t, append(objects, leaving(v1alpha1.FinalizerStoredBackup)))
		if err := s.forgetBackup(context.Background(), "leaving"); err != nil {
			t.Fatal(err)
		}
		if text := s.out.String(); strings.Contains(text, "--backup-id") ||
			!strings.Contains(text, "stay: s3://backups/") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// leavingCluster is one that is being deleted, and whose archive goes with it.
func leavingCluster() *v1alpha1.Cluster {
	asked := metav1.NewTime(now)
	c := stored()
	c.DeletionTimestamp, c.Finalizers = &asked, []string{v1alpha1.FinalizerStoredArchive}
	c.Spec.Backup.ReclaimPolicy = v1alpha1.ReclaimDelete
	return c
}

func TestAClusterIsLetGoAndItsArchiveStays(t *testing.T) {
	c := leavingCluster()
	job := removalOf("demo-remove-all", v1alpha1.AnnotationClusterUID, string(c.UID))
	s := newBackupScene(t, []client.Object{c, job})
	if err := s.forgetArchive(context.Background(), "demo"); err != nil {
		t.Fatal(err)
	}
	if text := s.out.String(); !strings.Contains(text, "stays: s3://backups/prod/demo.") {
		t.Error(text)
	}
	for _, obj := range []client.Object{&v1alpha1.Cluster{}, &batchv1.Job{}} {
		name := map[bool]string{true: "demo", false: job.Name}
		_, is := obj.(*v1alpha1.Cluster)
		err := s.client.Get(context.Background(), types.NamespacedName{Namespace: "shop", Name: name[is]}, obj)
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s is still there: %v", name[is], err)
		}
	}
}

func TestNoClusterIsLetGoWithAClaimThatIsToStay(t *testing.T) {
	c := leavingCluster()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "demo-1", Namespace: "shop",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c,
			v1alpha1.GroupVersion.WithKind("Cluster"))}}}
	s := newBackupScene(t, []client.Object{c, claim})
	mustFail(t, s.forgetArchive(context.Background(), "demo"), "kubectl patch pvc demo-1 -n shop --type json")
	if err := s.client.Get(context.Background(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}

func TestOnlyAClusterThatIsKeptIsLetGo(t *testing.T) {
	stays, waits := leavingCluster(), leavingCluster()
	stays.DeletionTimestamp = nil
	waits.Finalizers = []string{"example.com/wait"}
	for want, c := range map[string]*v1alpha1.Cluster{
		"set spec.backup.reclaimPolicy to Retain": stays,
		"the operator does not keep the Cluster":  waits,
	} {
		s := newBackupScene(t, []client.Object{c})
		mustFail(t, s.forgetArchive(context.Background(), "demo"), want)
	}
	s := newBackupScene(t, nil)
	mustFail(t, s.forgetArchive(context.Background(), "demo"), "there is no Cluster demo in namespace shop")
}

func TestOnlyABackupThatIsKeptIsForgotten(t *testing.T) {
	for want, b := range map[string]*v1alpha1.Backup{
		"is not being deleted: nothing was done":  completed("leaving", 0),
		"the operator does not keep the Backup":   leaving("example.com/wait"),
		"there is no Backup leaving in namespace": completed("another", 0),
	} {
		s := newBackupScene(t, []client.Object{b})
		mustFail(t, s.forgetBackup(context.Background(), "leaving"), want)
	}
}
