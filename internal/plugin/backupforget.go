package plugin

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

func backupForgetCommand(k *kube) *cobra.Command {
	var cluster bool
	cmd := &cobra.Command{
		Use:   "forget BACKUP | --cluster CLUSTER",
		Short: "Let a Backup, or a Cluster, go that is being deleted, and leave its data in the store",
		Args:  exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := k.open()
			if err != nil {
				return err
			}
			p := newCaller(cmd, s, "", true)
			if cluster {
				return p.forgetArchive(cmd.Context(), args[0])
			}
			return p.forgetBackup(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVar(&cluster, "cluster", false, "the name is that of a Cluster whose archive is to stay, or what "+
		"is left of it")
	return cmd
}

// forgetBackup takes the finalizer off a Backup whose data cannot be removed, and then deletes the Job
// that may still try.
func (p *caller) forgetBackup(ctx context.Context, name string) error {
	b, err := p.get(ctx, name)
	if err != nil {
		return err
	}
	if b.DeletionTimestamp == nil {
		return fmt.Errorf("the Backup %s is not being deleted: nothing was done. "+
			"First: kubectl delete backups.%s %s -n %s --wait=false",
			b.Name, v1alpha1.GroupVersion.Group, b.Name, b.Namespace)
	}
	if err := p.letGo(ctx, b, "Backup", v1alpha1.FinalizerStoredBackup); err != nil {
		return err
	}
	if err := p.endRemoval(ctx, "Backup", b.Name, resources.BackupRemoval(&v1alpha1.Cluster{}, b)); err != nil {
		return err
	}
	p.say("The Backup %s is forgotten.", b.Name)
	if b.Status.BackupID != "" && b.Removed() == nil {
		p.say("Its data, or what is left of them, stay: %s/base/%s. It can be restored by its id if it is whole%s",
			b.Status.DestinationPath, b.Status.BackupID, p.restoreByID(ctx, b))
		p.say("To remove it by hand: manifest.json first, then the parts.")
	}
	return nil
}

// restoreByID ends a sentence with how a backup is restored whose Backup is gone. Where it does not lie in the
// store that the Cluster names now, that takes a manifest.
func (p *caller) restoreByID(ctx context.Context, b *v1alpha1.Backup) string {
	c := &v1alpha1.Cluster{}
	err := p.client.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.Cluster.Name}, c)
	if err != nil || !liesWithArchive(c, b) {
		return "."
	}
	return fmt.Sprintf(": kubectl cnmsql restore %s --name NEW --backup-id %s -n %s", b.Spec.Cluster.Name,
		b.Status.BackupID, b.Namespace)
}

// forgetArchive takes the finalizer off a Cluster whose archive cannot be removed, and then
// deletes the Job that may still try.
func (p *caller) forgetArchive(ctx context.Context, name string) error {
	c, err := getCluster(ctx, p.client, types.NamespacedName{Namespace: p.key.Namespace, Name: name})
	if err != nil {
		return err
	}
	if c.DeletionTimestamp == nil {
		return fmt.Errorf("the Cluster %s is not being deleted: nothing was done. "+
			"To have its archive stay when it is: set spec.backup.reclaimPolicy to Retain", c.Name)
	}
	if err := p.refuseUnfreed(ctx, c); err != nil {
		return err
	}
	if err := p.letGo(ctx, c, "Cluster", v1alpha1.FinalizerStoredArchive); err != nil {
		return err
	}
	if err := p.endRemoval(ctx, "Cluster", c.Name, resources.ArchiveRemoval(c)); err != nil {
		return err
	}
	p.say("The Cluster %s is let go.", c.Name)
	if c.Spec.Backup.ArchiveGoes() {
		p.say("Its archive, or what is left of it, stays: %s.",
			resources.StorePath(c.Spec.Backup.ObjectStore, c.Name))
	}
	return nil
}

// refuseUnfreed refuses to let a Cluster go with whose end claims would be deleted that stay by its spec.
func (p *caller) refuseUnfreed(ctx context.Context, c *v1alpha1.Cluster) error {
	if resources.VolumesGo(c) {
		return nil
	}
	var all corev1.PersistentVolumeClaimList
	if err := p.client.List(ctx, &all, client.InNamespace(c.Namespace)); err != nil {
		return fmt.Errorf("nothing was done: see which PersistentVolumeClaims go with the Cluster %s: %w", c.Name,
			explain(err))
	}
	unfreed := resources.Unfreed(c, all.Items)
	if len(unfreed) == 0 {
		return nil
	}
	return fmt.Errorf("nothing was done: these PersistentVolumeClaims would be deleted with the Cluster %s, although "+
		"spec.storage.whenDeleted says that they stay: %s. The operator takes the Cluster off them within seconds: "+
		"try again. If it does not run, do so by hand for each: kubectl patch pvc %s -n %s --type json "+
		`-p '[{"op":"remove","path":"/metadata/ownerReferences"}]'`, c.Name, strings.Join(unfreed, ", "), unfreed[0],
		c.Namespace)
}

// endRemoval deletes the Job of a removal, which does not belong to what was let go, and would remove the
// data once the store can be reached.
func (p *caller) endRemoval(ctx context.Context, kind, name string, r resources.Removal) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: p.key.Namespace, Name: r.Name}}
	err := p.client.Get(ctx, client.ObjectKeyFromObject(job), job)
	if err == nil && r.IsOf(job) {
		err = p.client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("the %s %s is let go, but the Job %s may still remove its data: %w; delete it", kind, name,
			job.Name, explain(err))
	}
	return nil
}

// letGo takes a finalizer of the operator off an object that is being deleted.
func (p *caller) letGo(ctx context.Context, obj client.Object, kind, finalizer string) error {
	before := obj.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(obj, finalizer) {
		return fmt.Errorf("the operator does not keep the %s %s any more: look at its other finalizers", kind,
			obj.GetName())
	}
	err := p.client.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("letting the %s %s go: %w (the right to patch it is needed)", kind, obj.GetName(),
			explain(err))
	}
	return nil
}
