package plugin

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

func backupCommand(k *kube) *cobra.Command {
	var wish backupWish
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "backup CLUSTER",
		Short:   "Take a backup of a cluster now, and follow it",
		Example: "  kubectl cnmsql backup demo\n  kubectl cnmsql backup demo --name before-migration --target primary",
		Args:    exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wish.check(); err != nil {
				return err
			}
			s, err := k.open()
			if err != nil {
				return err
			}
			t := newTaker(newCaller(cmd, s, args[0], true))
			b, err := t.create(cmd.Context(), wish)
			if err != nil {
				return err
			}
			if !wait {
				t.say("To follow it: %s", followCommand(b))
				return nil
			}
			return t.followFor(cmd.Context(), b, timeout)
		},
	}
	cmd.Flags().StringVar(&wish.name, "name", "", "name of the Backup; CLUSTER-YYYYMMDDhhmmss in UTC by default")
	cmd.Flags().StringVar(&wish.target, "target", "",
		"primary or prefer-standby; the Cluster's spec.backup.target by default")
	cmd.Flags().BoolVar(&wait, "wait", true,
		"follow the backup until it ends; --wait=false returns when the Backup is created")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to follow, 0 is without end; the backup itself goes on")
	cmd.AddCommand(backupListCommand(k), backupFollowCommand(k), backupVerifyCommand(k), backupForgetCommand(k),
		backupLostCommand(k))
	return cmd
}

func backupFollowCommand(k *kube) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "follow BACKUP",
		Short: "Follow a Backup that exists until it ends",
		Args:  exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := k.open()
			if err != nil {
				return err
			}
			t := newTaker(newCaller(cmd, s, "", true))
			b, err := t.get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return t.followFor(cmd.Context(), b, timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to follow, 0 is without end; the backup itself goes on")
	return cmd
}

// backupWish is what somebody asks of a backup; what is empty is decided elsewhere.
type backupWish struct{ name, target string }

// backupName is what the API server takes for the name of a Backup.
var backupName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,54}[a-z0-9])?$`)

func (w backupWish) check() error {
	if w.target != "" && w.target != v1alpha1.TargetPrimary && w.target != v1alpha1.TargetPreferStandby {
		return fmt.Errorf("--target %s is not known; use %s, or %s for a replica", w.target, v1alpha1.TargetPrimary,
			v1alpha1.TargetPreferStandby)
	}
	if w.name != "" && !backupName.MatchString(w.name) {
		return fmt.Errorf("--name %s cannot be the name of a Backup: it has at most 56 characters, lower-case "+
			"letters, digits and '-' "+
			"between them, for the name of its Job is made from it; choose another one", w.name)
	}
	return nil
}

// defaultBackupName is that of a Backup that was taken by hand. The name of a Cluster may be
// so long that it has to be cut.
func defaultBackupName(cluster string, now time.Time) string {
	return strings.TrimRight(cluster[:min(len(cluster), 41)], "-") + "-" + now.UTC().Format("20060102150405")
}

// taker has backups taken, and follows them.
type taker struct {
	caller
	line *changingLine
}

func newTaker(c caller) *taker { return &taker{caller: c, line: newChangingLine(c.out)} }

// create makes the Backup, once it is sure that it has a place to go to.
func (t *taker) create(ctx context.Context, wish backupWish) (*v1alpha1.Backup, error) {
	c, err := getCluster(ctx, t.client, t.key)
	if err != nil {
		return nil, err
	}
	store, err := storeOf(c)
	if err != nil {
		return nil, err
	}
	b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace,
		Labels: map[string]string{v1alpha1.LabelCluster: c.Name}}}
	b.Name = cmp.Or(wish.name, defaultBackupName(c.Name, t.now()))
	b.Spec.Cluster.Name, b.Spec.Target = c.Name, wish.target
	err = t.client.Create(ctx, b)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, fmt.Errorf("there is a Backup %s already, and each is taken once: nothing was done. "+
			"Choose another --name, or follow that one: %s", b.Name, followCommand(b))
	case err != nil:
		return nil, fmt.Errorf("creating Backup %s: %w (the right to create backups is needed); "+
			"look whether it is there: kubectl cnmsql backup list %s -n %s", b.Name, explain(err), c.Name, c.Namespace)
	}
	t.say("Created the Backup %s of %s, which goes to %s.", b.Name, c.Name, resources.StorePath(store, c.Name))
	return b, nil
}

// storeOf is where a Cluster's backups go; a refusal that says what to do when nowhere.
func storeOf(c *v1alpha1.Cluster) (*v1alpha1.ObjectStoreSpec, error) {
	if c.DeletionTimestamp != nil {
		return nil, fmt.Errorf("cluster %s is being deleted: no backup is taken of it, and none was begun", c.Name)
	}
	if !hasStore(c) {
		return nil,
			fmt.Errorf("cluster %s names no object store, so that a backup has nowhere to go: nothing was done. "+
				"Add spec.backup.objectStore (bucket, endpoint or region, credentials): kubectl edit clusters.%s %s "+
				"-n %s",
				c.Name, v1alpha1.GroupVersion.Group, c.Name, c.Namespace)
	}
	return c.Spec.Backup.ObjectStore, nil
}

func hasStore(c *v1alpha1.Cluster) bool {
	return c.Spec.Backup != nil && c.Spec.Backup.ObjectStore != nil
}

// get reads a Backup; its errors tell what to do.
func (p *caller) get(ctx context.Context, name string) (*v1alpha1.Backup, error) {
	b := &v1alpha1.Backup{}
	err := p.client.Get(ctx, types.NamespacedName{Namespace: p.key.Namespace, Name: name}, b)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no Backup %s in namespace %s; list those of a cluster: kubectl cnmsql "+
			"backup list CLUSTER -n %s",
			name, p.key.Namespace, p.key.Namespace)
	case err != nil:
		return nil, fmt.Errorf("reading Backup %s of namespace %s: %w", name, p.key.Namespace, explain(err))
	}
	return b, nil
}

func followCommand(b *v1alpha1.Backup) string {
	return fmt.Sprintf("kubectl cnmsql backup follow %s -n %s", b.Name, b.Namespace)
}
