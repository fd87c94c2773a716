package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

func backupListCommand(k *kube) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list CLUSTER",
		Short: "Show the backups of a cluster, its archive and schedules, and to which moments it can be restored",
		Args:  exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(output, "table"); err != nil {
				return err
			}
			s, err := k.open()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), readLimit)
			defer cancel()
			c := newCaller(cmd, s, args[0], true)
			f, err := c.backupFacts(ctx)
			if err != nil {
				return err
			}
			if output != "" {
				return encode(cmd.OutOrStdout(), output, BuildBackups(f))
			}
			return WriteBackups(s.aim.printer(cmd.OutOrStdout()), BuildBackups(f))
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	return cmd
}

// BackupFacts are what Kubernetes has about the backups of a Cluster.
type BackupFacts struct {
	Namespace, Name string
	// Cluster is nil when it does not exist any more.
	Cluster   *v1alpha1.Cluster
	Backups   []v1alpha1.Backup
	Schedules []v1alpha1.ScheduledBackup
	// Said is what the primary says of its archive; nil when it says nothing. Unasked is why
	// it could not be asked.
	Said    *core.Archive
	Unasked string
	Now     time.Time
}

// backupFacts reads them; an error when there is neither a Cluster nor anything of it.
func (p *caller) backupFacts(ctx context.Context) (BackupFacts, error) {
	f := BackupFacts{Namespace: p.key.Namespace, Name: p.key.Name, Now: p.now(), Cluster: &v1alpha1.Cluster{}}
	var err error
	if f.Backups, err = backupsOf(ctx, p.client, f.Namespace, f.Name); err != nil {
		return f, err
	}
	schedules := &v1alpha1.ScheduledBackupList{}
	if err := p.client.List(ctx, schedules, client.InNamespace(f.Namespace)); err != nil {
		return f, fmt.Errorf("listing the ScheduledBackups of namespace %s: %w", f.Namespace, explain(err))
	}
	for _, s := range schedules.Items {
		if s.Spec.Cluster.Name == f.Name {
			f.Schedules = append(f.Schedules, s)
		}
	}
	err = p.client.Get(ctx, p.key, f.Cluster)
	if apierrors.IsNotFound(err) && len(f.Backups)+len(f.Schedules) > 0 {
		f.Cluster = nil
		return f, nil
	}
	if err != nil {
		_, err = getCluster(ctx, p.client, p.key)
		return f, err
	}
	p.askArchive(ctx, &f)
	return f, nil
}

// askArchive asks the primary how far the archive is. The Cluster's status does not say until
// when it is complete: it would have to be written again and again while nothing happens.
func (p *caller) askArchive(ctx context.Context, f *BackupFacts) {
	holder := holderOf(&f.Cluster.Status)
	if !f.Cluster.Spec.Backup.Archives() || holder == "" {
		return
	}
	w := p.ask.one(ctx, holder)
	r, known := w.Report.Get()
	switch {
	case !known:
		f.Unasked = fmt.Sprintf("%s could not be asked (%s)", holder, w.Problem)
	default:
		f.Said = r.Archive
	}
}

// backupsOf are the Backups of a Cluster, the newest last.
func backupsOf(ctx context.Context, c client.Reader, namespace, cluster string) ([]v1alpha1.Backup, error) {
	all := &v1alpha1.BackupList{}
	if err := c.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the Backups of namespace %s: %w", namespace, explain(err))
	}
	its := slices.DeleteFunc(all.Items, func(b v1alpha1.Backup) bool { return b.Spec.Cluster.Name != cluster })
	slices.SortStableFunc(its, func(a, b v1alpha1.Backup) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return its, nil
}

// Backups is what Kubernetes tells about the backups of a Cluster. What lies in the object
// store besides is not looked at.
type Backups struct {
	Namespace string    `json:"namespace"`
	Cluster   string    `json:"cluster"`
	Taken     time.Time `json:"taken"`
	// Gone: the Cluster does not exist any more.
	Gone bool `json:"clusterGone,omitempty"`
	// Store is where they go; empty when the Cluster names no object store.
	Store     string     `json:"store,omitempty"`
	Archive   Archive    `json:"archive"`
	Schedules []Schedule `json:"schedules"`
	Backups   []Backup   `json:"backups"`
	Window    Window     `json:"window"`
	// Verification is the last one; nil when there was none.
	Verification *v1alpha1.VerificationStatus `json:"lastVerification,omitempty"`
}

// Archive is how far binary logs are archived.
type Archive struct {
	Enabled bool `json:"enabled"`
	// Healthy is nil when the operator has not said it.
	Healthy *bool  `json:"healthy,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// LastTime is when something was last archived, LastGTID what that was.
	LastTime *time.Time `json:"lastArchivedTime,omitempty"`
	LastGTID string     `json:"lastArchivedGTID,omitempty"`
	// CompleteUntil is until when all is archived, though nothing was written since LastTime.
	CompleteUntil *time.Time `json:"completeUntil,omitempty"`
	// RPOSeconds is how old the oldest transaction is that could be archived and is not: what
	// would be lost with all instances. It is nil when the primary does not say it.
	RPOSeconds   *float64 `json:"rpoSeconds,omitempty"`
	PendingFiles int      `json:"pendingFiles,omitempty"`
	// Missing was purged before it was archived.
	Missing string `json:"missing,omitempty"`
	// CompleteSince is since when it lacks nothing; nil where nobody knows.
	CompleteSince *time.Time `json:"completeSince,omitempty"`
}

// Schedule is a ScheduledBackup.
type Schedule struct {
	Name      string     `json:"name"`
	Schedule  string     `json:"schedule"`
	TimeZone  string     `json:"timeZone,omitempty"`
	Suspended bool       `json:"suspended,omitempty"`
	Next      *time.Time `json:"next,omitempty"`
	Problem   string     `json:"problem,omitempty"`
}

// Backup is one line of the list.
type Backup struct {
	Name  string `json:"name"`
	Phase string `json:"phase"`
	// Removed names why its data are not in the store any more; empty while they are.
	Removed  string     `json:"removed,omitempty"`
	Percent  string     `json:"percent,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Error    string     `json:"error,omitempty"`
	Instance string     `json:"instance,omitempty"`
	Began    *time.Time `json:"began,omitempty"`
	Ended    *time.Time `json:"ended,omitempty"`
	Took     string     `json:"took"`
	Size     int64      `json:"sizeBytes,omitempty"`
	Stored   int64      `json:"storedBytes,omitempty"`
	ID       string     `json:"id,omitempty"`
	// EncryptedTo is the recipient of age whose identity restores it; empty when it is plain.
	EncryptedTo string `json:"encryptedTo,omitempty"`
	// Schedule is the ScheduledBackup that made it; empty when a user did.
	Schedule string `json:"schedule,omitempty"`
	// OfEarlier: it is of an earlier Cluster of this name, and holds nothing of this one.
	OfEarlier bool `json:"ofEarlierCluster,omitempty"`
	// Going is why its data are being removed from the store; empty while they are not.
	Going string `json:"beingDeleted,omitempty"`
	// Elsewhere is where it lies if not where the Cluster's backups go now.
	Elsewhere string `json:"elsewhere,omitempty"`
}

// BuildBackups puts BackupFacts in order.
func BuildBackups(f BackupFacts) Backups {
	out := Backups{Namespace: f.Namespace, Cluster: f.Name, Taken: f.Now, Gone: f.Cluster == nil,
		Schedules: []Schedule{}, Backups: []Backup{}}
	if f.Cluster != nil {
		out.Archive, out.Verification = archiveOf(f.Cluster, f.Said), f.Cluster.Status.LastVerification
	}
	if f.Cluster != nil && hasStore(f.Cluster) {
		out.Store = resources.StorePath(f.Cluster.Spec.Backup.ObjectStore, f.Name)
	}
	for i := range f.Schedules {
		s := &f.Schedules[i]
		out.Schedules = append(out.Schedules, Schedule{Name: s.Name, Schedule: s.Spec.Schedule,
			TimeZone:  s.Spec.TimeZone,
			Suspended: s.Spec.Suspend, Next: coarse(s.Status.NextScheduleTime), Problem: s.Status.Problem})
	}
	for i := range f.Backups {
		out.Backups = append(out.Backups, backupOf(f.Cluster, &f.Backups[i], out.Store, f.Now))
	}
	out.Window = windowOf(f, &out.Archive)
	return out
}

func backupOf(c *v1alpha1.Cluster, b *v1alpha1.Backup, store string, now time.Time) Backup {
	s := &b.Status
	out := Backup{Name: b.Name, Phase: cmp.Or(s.Phase, "Unseen"), Reason: s.Reason, Error: s.Error,
		Instance: s.InstanceName,
		Began:    coarse(s.StartedAt), Ended: coarse(s.StoppedAt), Took: took(b, now), Size: s.Size,
		Stored: s.StoredSize, ID: s.BackupID,
		EncryptedTo: s.EncryptedTo, Schedule: b.Labels[v1alpha1.LabelScheduledBackup],
		OfEarlier: b.IsOfEarlier(c), Going: goingOf(b)}
	if gone := b.Removed(); gone != nil {
		out.Removed = gone.Reason
	}
	if s.Progress != nil && s.Phase == v1alpha1.BackupRunning {
		out.Percent = s.Progress.Percent
	}
	if store != "" && s.DestinationPath != "" && s.DestinationPath != store {
		out.Elsewhere = s.DestinationPath
	}
	return out
}

// goingOf is how the removal of a Backup's data goes; "" while it is not deleted.
func goingOf(b *v1alpha1.Backup) string {
	if b.DeletionTimestamp == nil {
		return ""
	}
	if is := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionBackupStored); is != nil {
		return is.Reason
	}
	return "its removal has not begun"
}

// archiveOf is what is known of it: by the Cluster, and how far it is now by the primary's own
// words, which may be nil.
func archiveOf(c *v1alpha1.Cluster, said *core.Archive) Archive {
	out := Archive{Enabled: c.Spec.Backup.Archives()}
	is := c.Status.ContinuousArchiving
	if !out.Enabled || is == nil {
		return out
	}
	out.LastTime, out.LastGTID = coarse(is.LastArchivedTime), is.LastArchivedGTID
	if said != nil {
		out.RPOSeconds = &said.RPO
		if out.LastTime != nil && said.CompleteUntil.After(*out.LastTime) {
			out.CompleteUntil = &said.CompleteUntil
		}
	}
	out.PendingFiles, out.Missing, out.CompleteSince = int(is.PendingFiles), is.Missing, coarse(is.CompleteSince)
	if cond := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving); cond != nil {
		out.Healthy = new(cond.Status == metav1.ConditionTrue)
		out.Reason, out.Message = cond.Reason, cond.Message
	}
	return out
}

func coarse(t *metav1.Time) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}
