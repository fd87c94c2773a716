package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"cnmsql.co/api/v1alpha1"
)

func backupForgetCommand(k *kube) *cobra.Command {
	return &cobra.Command{
		Use:   "forget BACKUP",
		Short: "Let a Backup go that is being deleted, and leave its data in the store",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := k.open()
			if err != nil {
				return err
			}
			p := newCaller(cmd, s, "", true)
			return p.forgetBackup(cmd.Context(), args[0])
		},
	}
}

// forgetBackup takes the finalizer off a Backup whose data cannot be removed.
func (p *caller) forgetBackup(ctx context.Context, name string) error {
	b, err := p.get(ctx, name)
	if err != nil {
		return err
	}
	switch {
	case b.DeletionTimestamp == nil:
		return fmt.Errorf("the Backup %s is not being deleted: nothing was done. "+
			"First: kubectl delete backups.%s %s -n %s --wait=false",
			b.Name, v1alpha1.GroupVersion.Group, b.Name, b.Namespace)
	case !controllerutil.ContainsFinalizer(b, v1alpha1.FinalizerStoredBackup):
		return errors.New("the operator does not keep the Backup " + b.Name + " any more: look at its other finalizers")
	}
	before := b.DeepCopy()
	controllerutil.RemoveFinalizer(b, v1alpha1.FinalizerStoredBackup)
	err = p.client.Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("letting the Backup %s go: %w (the right to patch backups is needed)", b.Name, explain(err))
	}
	p.say("The Backup %s is forgotten.", b.Name)
	if b.Status.BackupID != "" && b.Removed() == nil {
		p.say("Its data, or what is left of them, stay: %s/base/%s. It can be restored by its id if it is whole.\n"+
			"To remove it by hand: manifest.json first, then the parts.", b.Status.DestinationPath, b.Status.BackupID)
	}
	return nil
}
