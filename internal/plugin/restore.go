package plugin

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

func restoreCommand(k *kube) *cobra.Command {
	var wish restoreWish
	var apply bool
	cmd := &cobra.Command{
		Use:   "restore CLUSTER --name NEW",
		Short: "Print the manifest of a new Cluster that begins with the data of another one, or apply it",
		Example: `  kubectl cnmsql restore demo --name demo-2 --to 2026-11-23T21:04:05Z > demo-2.yaml
  kubectl cnmsql restore demo --name demo-2 --to 10m --apply
  kubectl cnmsql restore demo --name demo-2 --backup nightly-20261122013000`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wish.check(args[0], time.Now()); err != nil {
				return err
			}
			s, err := k.open()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), readLimit)
			defer cancel()
			r := &restorer{newCaller(cmd, s, args[0], true)}
			return r.restore(ctx, wish, apply)
		},
	}
	cmd.Flags().StringVar(&wish.name, "name", "", "name of the new Cluster")
	cmd.Flags().StringVar(&wish.to, "to", "",
		"the moment to restore: RFC 3339, as 2026-11-23T21:04:05Z, or how long ago, as 10m")
	cmd.Flags().StringVar(&wish.gtid, "gtid", "", "restore until all of this GTID set is there")
	cmd.Flags().BoolVar(&wish.exclusive, "exclusive", false, "with --gtid: end before the first of its transactions")
	cmd.Flags().BoolVar(&wish.immediate, "immediate", false, "restore the backup alone, and nothing of the archive")
	cmd.Flags().StringVar(&wish.backup, "backup", "", "begin with this Backup of the namespace; the newest that "+
		"suits by default")
	cmd.Flags().StringVar(&wish.backupID, "backup-id", "", "begin with the backup of this id in the object store")
	cmd.Flags().BoolVar(&apply, "apply", false, "create the Cluster instead of printing its manifest")
	return cmd
}

// restoreWish is what somebody asks of a restore. Without a target, all that was archived
// is replayed.
type restoreWish struct {
	name, to, gtid, backup, backupID string
	exclusive, immediate             bool
	// at is what to means.
	at time.Time
}

var (
	clusterName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,48}[a-z0-9])?$`)
	backupID    = regexp.MustCompile(`^[0-9A-Za-z-]{0,64}$`)
)

// check refuses what contradicts itself; nothing is asked for that.
func (w *restoreWish) check(source string, now time.Time) error {
	switch {
	case w.name == "":
		return errors.New("--name is needed: a restore makes a new Cluster, beside the one whose data it begins with")
	case w.name == source:
		return fmt.Errorf(
			"--name %s is the Cluster itself, and a Cluster is not set back in place. Choose another name: "+
				"the new Cluster is made beside it; compare both, and lead the clients to the new one", w.name)
	case !clusterName.MatchString(w.name):
		return fmt.Errorf("--name %s cannot be the name of a Cluster: it begins with a letter, and has at most 50 "+
			"lower-case letters, "+
			"digits and '-'; choose another one", w.name)
	case w.backup != "" && w.backupID != "":
		return errors.New("--backup and --backup-id both name a backup; leave out one of them")
	case !backupID.MatchString(w.backupID):
		return fmt.Errorf("--backup-id %s is none: they look like 20261122T013000Z-1a2b3c4d; see the column ID of: "+
			"kubectl cnmsql backup list %s", w.backupID, source)
	}
	return w.checkTarget(now)
}

type restorer struct{ caller }

func (r *restorer) restore(ctx context.Context, w restoreWish, apply bool) error {
	f, err := r.source(ctx)
	if err != nil {
		return err
	}
	from, err := r.chosen(ctx, f, w)
	if err != nil {
		return err
	}
	unseen, err := r.isFree(ctx, w.name)
	if err != nil {
		return err
	}
	notes := append(restoreNotes(f, w, from), unseen...)
	manifest, err := manifestOf(restored(f.Cluster, w))
	if err != nil {
		return err
	}
	if !apply {
		return r.print(notes, manifest)
	}
	for _, note := range notes {
		r.say("%s", note)
	}
	if err := r.client.Create(ctx, manifest.Unstructured); err != nil {
		return fmt.Errorf("creating Cluster %s: %w. Print the manifest without --apply, correct it, and apply it",
			w.name, explain(err))
	}
	r.say("Created the Cluster %s. To follow: kubectl cnmsql status %s -n %s", w.name, w.name, f.Namespace)
	return nil
}

// source is the Cluster whose data are restored, and what is known of its backups.
func (r *restorer) source(ctx context.Context) (BackupFacts, error) {
	c := &v1alpha1.Cluster{}
	err := r.client.Get(ctx, r.key, c)
	if apierrors.IsNotFound(err) {
		return BackupFacts{}, fmt.Errorf("there is no Cluster %s in namespace %s to copy the spec from; its backups "+
			"are in the object store "+
			"still. Write the manifest by hand: spec.externalClusters with the name %s and its objectStore, and "+
			"spec.bootstrap.recovery.source: %s; docs/restore.md shows it",
			r.key.Name, r.key.Namespace, r.key.Name, r.key.Name)
	}
	if err != nil {
		return BackupFacts{}, fmt.Errorf("reading Cluster %s of namespace %s: %w", r.key.Name,
			r.key.Namespace, explain(err))
	}
	f := BackupFacts{Namespace: c.Namespace, Name: c.Name, Cluster: c, Now: r.now()}
	f.Backups, err = backupsOf(ctx, r.client, c.Namespace, c.Name)
	r.askArchive(ctx, &f)
	return f, err
}

// chosen is the Backup that was named; nil when none was, and then the Cluster has to name
// the object store in which one is looked for.
func (r *restorer) chosen(ctx context.Context, f BackupFacts, w restoreWish) (*v1alpha1.Backup, error) {
	c := f.Cluster
	if w.backup == "" {
		if !hasStore(c) {
			return nil, fmt.Errorf("cluster %s names no object store in spec.backup, where its backups would be "+
				"looked for; "+
				"name one with --backup: kubectl cnmsql backup list %s -n %s", c.Name, c.Name, c.Namespace)
		}
		return nil, isOwn(f, w)
	}
	b, err := r.get(ctx, w.backup)
	switch {
	case err != nil:
		return nil, err
	case b.Spec.Cluster.Name != c.Name:
		return nil, fmt.Errorf("the Backup %s is of Cluster %s and not of %s; to begin with it: "+
			"kubectl cnmsql restore %s --name %s --backup %s -n %s", b.Name, b.Spec.Cluster.Name, c.Name,
			b.Spec.Cluster.Name, w.name, b.Name, b.Namespace)
	case b.Removed() != nil:
		return nil, fmt.Errorf("the data of the Backup %s are not in the store any more (%s); choose another one: "+
			"kubectl cnmsql backup list %s -n %s", b.Name, b.Removed().Message, c.Name, c.Namespace)
	case b.DeletionTimestamp != nil:
		return nil, fmt.Errorf("the Backup %s is being deleted, and its data with it (%s); choose another one: "+
			"kubectl cnmsql backup list %s -n %s", b.Name, goingOf(b), c.Name, c.Namespace)
	case !b.IsRestorable():
		return nil, fmt.Errorf("the Backup %s is %s, and only a Completed one can be restored; choose another one: "+
			"kubectl cnmsql backup list %s -n %s", b.Name, phaseOf(b), c.Name, c.Namespace)
	case w.to != "" && b.Status.StartedAt != nil && w.at.Before(b.Status.StartedAt.Time):
		return nil, fmt.Errorf("--to %s is before the Backup %s began (%s), and a restore only goes on from a backup; "+
			"choose an older one, or leave --backup out", exact(w.at), b.Name, stamp(b.Status.StartedAt.Time))
	}
	return b, nil
}

// isOwn refuses the newest backup in the store where that is of an earlier Cluster of the name.
// Who wants those data names the Backup.
func isOwn(f BackupFacts, w restoreWish) error {
	other := lastOfEarlier(f.Cluster, f.Backups)
	if w.backupID != "" || other == nil || hasCompleted(f.Cluster, f.Backups) {
		return nil
	}
	return fmt.Errorf("all Completed Backups of the name %s were taken before this Cluster was created (%s): they are "+
		"of an earlier one, and hold nothing of this one. To begin with the data of the earlier one: "+
		"kubectl cnmsql restore %s --name %s --backup %s -n %s", f.Name, stamp(f.Cluster.CreationTimestamp.Time),
		f.Name, w.name, other.Name, f.Namespace)
}

// isFree refuses the name of a Cluster that exists: data come from a backup only when a
// Cluster is first made. It returns what to say of what could not be looked at.
func (r *restorer) isFree(ctx context.Context, name string) ([]string, error) {
	err := r.client.Get(ctx, types.NamespacedName{Namespace: r.key.Namespace, Name: name}, &v1alpha1.Cluster{})
	switch {
	case apierrors.IsNotFound(err):
		return r.isUnused(ctx, name)
	case err != nil:
		return nil, fmt.Errorf("looking whether there is a Cluster %s: %w", name, explain(err))
	}
	return nil, fmt.Errorf("there is a Cluster %s already, and a Cluster is restored only when it is first made; "+
		"choose another --name", name)
}

// isUnused refuses the name of a Cluster that was deleted and has left something: beside its
// volumes nothing is restored, and beside its backups none are kept.
func (r *restorer) isUnused(ctx context.Context, name string) (unseen []string, err error) {
	claims := &corev1.PersistentVolumeClaimList{}
	err = r.client.List(ctx, claims, client.InNamespace(r.key.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: name})
	switch {
	case apierrors.IsForbidden(err):
		unseen = append(unseen, fmt.Sprintf("Warning: you may not list PersistentVolumeClaims: if there are "+
			"volumes of a deleted Cluster %s, nothing is restored (VolumesKept).", name))
	case err != nil:
		return nil, fmt.Errorf("looking for volumes of a deleted Cluster %s: %w", name, explain(err))
	case len(claims.Items) > 0:
		return nil, fmt.Errorf("there are volumes of a deleted Cluster %s, for example %s, and nothing is restored "+
			"beside them (VolumesKept); choose another --name. Or delete them, if nobody needs their data: "+
			"kubectl get pvc -l %s=%s -n %s", name, claims.Items[0].Name, v1alpha1.LabelCluster, name, r.key.Namespace)
	}
	its, err := backupsOf(ctx, r.client, r.key.Namespace, name)
	if err != nil || len(its) == 0 {
		return unseen, err
	}
	return nil, fmt.Errorf("there are Backups of a deleted Cluster %s, for example %s: at the same place in the store "+
		"the new Cluster could neither be backed up nor archive (ArchiveTaken); choose another --name", name,
		its[0].Name)
}

// restoreNotes are what the reader should know, besides the manifest.
func restoreNotes(f BackupFacts, w restoreWish, from *v1alpha1.Backup) []string {
	archive := archiveOf(f.Cluster, f.Said)
	window := windowOf(f, &archive)
	notes := []string{fmt.Sprintf("A new Cluster %s that begins with the data of %s: %s, from %s.",
		w.name, f.Name, w.target(f.Now), w.base(from))}
	switch {
	case from == nil && w.backupID == "" && !hasCompleted(f.Cluster, f.Backups):
		notes = append(notes, "Warning: Kubernetes has no Completed Backup of "+f.Name+
			"; the object store must have a backup of which the object was deleted.")
	case w.immediate:
	case !archive.Enabled:
		notes = append(notes, "Warning: spec.backup.continuousArchiving of "+f.Name+
			" is not enabled: what was not archived before is not restored.")
	case w.to != "" && !window.holds(w.at):
		notes = append(notes, "Warning: that moment is not among those that Kubernetes knows to be restorable; known: "+
			window.Text+".")
	case archive.Healthy != nil && !*archive.Healthy:
		notes = append(notes, "Warning: the archive is not well: "+archive.Message)
	}
	if from != nil && from.IsOfEarlier(f.Cluster) {
		notes = append(notes, fmt.Sprintf("Warning: the Backup %s is of an earlier Cluster of the name %s, and holds "+
			"nothing of the one that there is now.", from.Name, f.Name))
	}
	return append(notes, copiedNotes(f.Cluster, w.name)...)
}

// copiedNotes are about what is copied although two Clusters may not both have it.
func copiedNotes(c *v1alpha1.Cluster, name string) []string {
	notes := []string{fmt.Sprintf("Copied from %s: its spec. Not copied: labels, annotations and ScheduledBackups.",
		c.Name)}
	if m := c.Spec.Managed; m != nil && m.Services != nil {
		notes = append(notes, "Look at spec.managed.services: an address or a host name there can belong to one "+
			"Cluster only.")
	}
	return append(notes, fmt.Sprintf("Backups of %s go to a directory of its own.", name))
}

// print writes a manifest with notes in front, as comments.
func (r *restorer) print(notes []string, manifest yamlObject) error {
	text, err := manifest.yaml()
	if err != nil {
		return err
	}
	var all strings.Builder
	for _, note := range r.aim.inAll(notes) {
		sentence(&all, "# %s", note)
	}
	_, err = fmt.Fprint(r.out, all.String()+text)
	return err
}
