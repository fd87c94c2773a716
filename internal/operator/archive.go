package operator

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backups"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/backup"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/resources"
)

// archive keeps the Secret by which the instances reach the object store. One that cannot
// be made up keeps nobody from taking writes: what the instances have stays, which may be that of
// another store, and an aside tells what is missing. Where nothing is archived, nobody has the credentials.
func (p *prerequisites) archive(ctx context.Context, c *v1alpha1.Cluster, asides *[]core.Problem) error {
	if !c.Spec.Backup.Archives() {
		return p.drop(ctx, c, &corev1.Secret{}, resources.Names(c.Name).ArchiveSecret())
	}
	files, err := p.archiveFiles(ctx, c)
	if missing := backups.AsMissing(err); missing != nil {
		*asides = append(*asides, core.Problem{Reason: core.BackupStoreSecret, Message: missing.Error() +
			"; until this is corrected, instances that archive go on with the previous object store and credentials: " +
			"a change of spec.backup is not used"})
		return nil
	}
	if err != nil {
		return err
	}
	return p.apply(ctx, c, resources.ArchiveSecret(c, files))
}

// archiveFiles reads the user's Secrets of the store, or recalls them; this is asked every few
// seconds.
func (p *prerequisites) archiveFiles(ctx context.Context, c *v1alpha1.Cluster) (map[string][]byte, error) {
	key := client.ObjectKeyFromObject(c)
	p.mu.Lock()
	known := p.stores[key]
	p.mu.Unlock()
	if known.holds(c) {
		return known.data, nil
	}
	read := time.Now()
	files, err := resources.StoreFiles(c.Spec.Backup.ObjectStore,
		backups.SecretReader(ctx, p.live, c.Namespace, "objectStore"))
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stores[key] = userSecret{uid: c.UID, generation: c.Generation, read: read, data: files}
	return files, nil
}

// archiveTold is how old what the status says of a healthy archive may be: it changes with
// every part, and is no reason to write each time.
const archiveTold = time.Minute

// backed is what is known of the Backups that lie where the archive goes.
type backed struct {
	taken []backup.Taken
	// closesGap tells whether one was taken since the archive has got its last gap.
	closesGap bool
	// isUnknown: the question has failed.
	isUnknown bool
}

// backedBy asks for the Backups where something follows from them: from the archive's gap, or once it begins. A
// question that fails keeps nobody from deciding: what is told of them stays for a while longer.
func (r *Reconciler) backedBy(ctx context.Context, c *v1alpha1.Cluster) backed {
	is := c.Status.ContinuousArchiving
	if !c.Spec.Backup.Archives() || is != nil && is.MissingSince == nil && is.Place != "" {
		return backed{}
	}
	all, err := backups.TakenOf(ctx, r.Client, c)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot list the Backups; it is not known whether one belongs to the archive")
		return backed{isUnknown: true}
	}
	hasGap := is != nil && is.MissingSince != nil
	return backed{taken: all, closesGap: hasGap && backup.GapClosed(backups.GapOf(is), all)}
}

// describeArchive says how far binary logs are archived.
func describeArchive(s *v1alpha1.ClusterStatus, c *v1alpha1.Cluster, o core.Observation, by backed) {
	if !c.Spec.Backup.Archives() {
		s.ContinuousArchiving = nil
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionContinuousArchiving)
		return
	}
	is := s.ContinuousArchiving
	if is == nil {
		is = &v1alpha1.ContinuousArchivingStatus{}
		if s.EstablishedAt == nil { // otherwise it lacks nothing since it has begun, which takes a rolling restart
			is.CompleteSince = &metav1.Time{Time: o.Now}
		}
	}
	is.Enabled = true
	s.ContinuousArchiving = is
	a := o.Archive()
	if a == nil && observation.IsUndecided(s.GroupReplication) {
		meta.SetStatusCondition(&s.Conditions, archiveUndecided(c))
		return
	}
	if a == nil {
		return // nobody takes writes, or the primary has only begun: what was said stays for a while
	}
	if a.Failure == "" {
		is.LastFailureReason, is.LastFailureMessage, is.LastFailureTime = "", "", nil
	} else if is.LastFailureReason != a.Failure || is.LastFailureMessage != a.Message && isStale(is, a) {
		is.LastFailureReason, is.LastFailureMessage, is.LastFailureTime = a.Failure, a.Message,
			&metav1.Time{Time: a.FailedAt}
	}
	gapClosed := noteGap(is, a, o.Now, by, goesTo(s, a, by))
	noteArchived(is, a, o.Now)
	cond := archiveCondition(a, is, gapClosed)
	cond.ObservedGeneration = c.Generation
	meta.SetStatusCondition(&s.Conditions, cond)
}

// isStale reports whether the failure that is told is so old that the one of now is told in its own words, though
// its reason is the same: the store may deny something else since somebody has mended what it denied. Words that
// change each time are no reason to write each time.
func isStale(is *v1alpha1.ContinuousArchivingStatus, a *core.Archive) bool {
	return is.LastFailureTime == nil || a.FailedAt.Sub(is.LastFailureTime.Time) >= archiveTold
}

// archiveUndecided returns the condition ContinuousArchiving for a group whose history is not
// decided. Then nobody archives, on purpose, whoever takes writes.
func archiveUndecided(c *v1alpha1.Cluster) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionContinuousArchiving, Status: metav1.ConditionFalse,
		Reason: string(core.BackupUndecided), ObservedGeneration: c.Generation,
		Message: "nothing is archived: a group recovery excluded some members, and the group was not seen since, so " +
			"it is not known which transactions are the Cluster's. Binary logs are kept, and are archived once the " +
			"group is seen with its quorum: bring its members back, or request the recovery again; see kubectl " +
			"cnmsql group status " + c.Name + " -n " + c.Namespace}
}

// noteArchived notes what was archived last, and what waits, once a minute as long as that goes on:
// of a burst the last part, too, and what piles up while nothing is archived. Kubernetes keeps whole
// seconds.
func noteArchived(is *v1alpha1.ContinuousArchivingStatus, a *core.Archive, now time.Time) {
	told := is.LastArchivedTime
	if told != nil && now.Sub(told.Time) < archiveTold {
		return
	}
	if n := a.PendingFiles; n != nil { // otherwise what was known last stays
		is.PendingFiles = int32(*n)
	}
	if at := a.At.Truncate(time.Second); !a.At.IsZero() && (told == nil || !at.Before(told.Time)) {
		is.LastArchivedBinlog, is.LastArchivedGTID, is.LastArchivedTime = a.File, a.GTIDs, &metav1.Time{Time: at}
	}
}

// archiveWord is how long what was said of a healthy archive holds at least, while nobody says
// anything of it.
const archiveWord = time.Minute

// noteArchiving notes when this operator first looked at the Cluster as at one that archives.
func (s *clusterState) noteArchiving(c *v1alpha1.Cluster, now time.Time) {
	if s.archives.IsZero() || c.Status.ContinuousArchiving == nil {
		s.archives = now
	}
}

// doubtArchive sets the condition ContinuousArchiving to Unknown when nobody has told of the
// archive for so long that it may not be in time any more. It does the same when nobody goes on
// archiving once it is known which history is the Cluster's, and when nobody begins to though there
// are data. Silence counts from since at the earliest: before, this operator has heard nobody.
func doubtArchive(s *v1alpha1.ClusterStatus, c *v1alpha1.Cluster, o core.Observation, since time.Time) {
	is := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionContinuousArchiving)
	switch {
	case !c.Spec.Backup.Archives(), o.Archive() != nil, observation.IsUndecided(s.GroupReplication),
		is == nil && s.EstablishedAt == nil,
		is != nil && is.Status != metav1.ConditionTrue && is.Reason != string(core.BackupUndecided):
		return
	}
	heard := since
	if is == nil && s.EstablishedAt.After(heard) {
		heard = s.EstablishedAt.Time
	}
	for i := range o.Instances {
		word := o.Instances[i].Latest
		if r, known := word.Get(); known && r.Archive != nil && word.Received().After(heard) {
			heard = word.Received()
		}
	}
	if o.Now.Sub(heard) < max(archiveWord, c.Spec.Backup.ContinuousArchiving.TargetRPO()) {
		return
	}
	message := "no instance can be asked how far binary logs are archived: bring the primary, or its network, back"
	if is == nil {
		message = "archiving is enabled, but has not begun: the primary begins when its Pod has been recreated with " +
			"the store's credentials. See what that waits for: kubectl cnmsql status " + c.Name + " -n " +
			c.Namespace
	}
	if last := s.ContinuousArchiving.LastArchivedTime; last != nil {
		message += "; archived up to " + last.UTC().Format(time.RFC3339) + " at least"
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: v1alpha1.ConditionContinuousArchiving,
		Status: metav1.ConditionUnknown, Reason: string(core.ReasonArchiveNotKnown), Message: message,
		ObservedGeneration: c.Generation})
}

// goesTo is where the archive goes, and went. Its beginning is not noted while nobody knows which Backups there are.
func goesTo(s *v1alpha1.ClusterStatus, a *core.Archive, by backed) backup.Goes {
	is := s.ContinuousArchiving
	out := backup.Goes{Before: is.Place, Now: a.Place, Began: is.LastArchivedTime != nil}
	since, established := is.CompleteSince, s.EstablishedAt
	out.FromBeginning = since != nil && (established == nil || !since.Time.After(established.Time))
	if out.Before == "" && by.isUnknown {
		out.Now = ""
	}
	return out
}

// noteGap notes since when no backup goes with the archive: it lacks something, or has moved.
// Whoever archives next may know nothing of it, so that it is noted until a backup closes it.
func noteGap(is *v1alpha1.ContinuousArchivingStatus, a *core.Archive, now time.Time, by backed,
	goes backup.Goes) (closed bool) {
	closed = by.closesGap
	switch {
	case a.Missing != "" && a.Missing != is.Missing:
		is.Missing, is.MissingSince, closed = a.Missing, &metav1.Time{Time: now}, false
	case goes.Moves(by.taken):
		is.Missing, is.MissingSince, closed = a.Missing, &metav1.Time{Time: now}, false
	case a.Missing == "" && closed:
		is.Missing, is.MissingSince = "", nil
	}
	if goes.Now != "" {
		is.Place = goes.Now
	}
	if since := is.MissingSince; since != nil && (is.CompleteSince == nil || is.CompleteSince.Before(since)) {
		is.CompleteSince = since.DeepCopy() // it outlives the gap, which is forgotten once it is closed
	}
	return closed
}

func archiveCondition(a *core.Archive, is *v1alpha1.ContinuousArchivingStatus, gapClosed bool) metav1.Condition {
	out := metav1.Condition{Type: v1alpha1.ConditionContinuousArchiving, Status: metav1.ConditionFalse}
	switch {
	case a.Failure != "":
		out.Reason = a.Failure
		out.Message = "nothing is archived: " + is.LastFailureMessage
	case is.MissingSince != nil && !gapClosed && is.Missing == "":
		out.Reason = string(core.ReasonArchiveMoved)
		out.Message = "the archive is in " + is.Place + " now, and no backup was taken there since: " +
			"a restore needs one. A Backup is made; look whether it completes"
	case is.MissingSince != nil && !gapClosed:
		out.Reason = string(core.ReasonArchiveGap)
		out.Message = "the archive lacks " + is.Missing +
			", which the server purged before it was archived: a restore cannot go past it. A Backup is made, " +
			"from which one can; look whether it completes"
	case a.Behind:
		out.Reason = string(core.ReasonArchivingBehind)
		out.Message =
			"what is not archived is older than spec.backup.continuousArchiving.targetRPOSeconds allows: look " +
				"whether the object store is slow, or raise it"
	default:
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, string(core.ReasonArchiving),
			"the primary archives its binary logs in time"
		if a.EncryptedTo != "" {
			out.Message += ", encrypted to " + a.EncryptedTo
		}
	}
	return out
}

// tellArchive tells of a condition that has changed.
func (r *Reconciler) tellArchive(c *v1alpha1.Cluster, before []metav1.Condition) {
	now := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving)
	was := meta.FindStatusCondition(before, v1alpha1.ConditionContinuousArchiving)
	if now == nil || was != nil && was.Reason == now.Reason && was.Status == now.Status {
		return
	}
	r.tell(c, core.Event{Warning: now.Status != metav1.ConditionTrue, Reason: core.Reason(now.Reason),
		Message: now.Message})
}
