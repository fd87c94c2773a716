package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

func scheduled(name, schedule string, change func(*v1alpha1.ScheduledBackup)) *v1alpha1.ScheduledBackup {
	s := &v1alpha1.ScheduledBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	s.Spec.Cluster.Name, s.Spec.Schedule = "demo", schedule
	change(s)
	return s
}

// manyBackups are of every phase, and one of another Cluster.
func manyBackups() []client.Object {
	nightly := completed("nightly-20260228013000", 25*time.Hour)
	nightly.Labels = map[string]string{v1alpha1.LabelScheduledBackup: "nightly"}
	nightly.Status.EncryptedTo = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	elsewhere := completed("elsewhere", 2*time.Hour)
	elsewhere.Status.DestinationPath, elsewhere.Status.ObjectStore.Bucket = "s3://other/demo", "other"
	elsewhere.Status.EncryptedTo = nightly.Status.EncryptedTo
	running := backupAt("running", v1alpha1.BackupRunning, time.Minute)
	runs("45%", 2<<30)(running)
	running.Status.StartedAt = second(50 * time.Second)
	other := completed("of-another", time.Hour)
	other.Spec.Cluster.Name = "shop"
	return []client.Object{running, failed("failed", 3*time.Hour), nightly, elsewhere, other, backupAt("unseen", "", 0),
		scheduled("nightly", "0 30 1 * * *", func(s *v1alpha1.ScheduledBackup) {
			s.Spec.TimeZone, s.Status.NextScheduleTime = "Europe/Berlin", second(-22*time.Hour)
		}),
		scheduled("hourly", "@hourly", func(s *v1alpha1.ScheduledBackup) {
			s.Status.NextScheduleTime, s.Status.Problem = second(3*time.Hour), "Backup hourly-1 has not ended"
		}),
		scheduled("weekly", "@weekly", func(s *v1alpha1.ScheduledBackup) { s.Spec.Suspend = true }),
		scheduled("wrong", "* *", func(s *v1alpha1.ScheduledBackup) { s.Status.Problem = "a schedule has six fields" }),
	}
}

func listOf(t *testing.T, objects ...client.Object) Backups {
	t.Helper()
	f, err := newBackupScene(t, objects).backupFacts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return BuildBackups(f)
}

func gap() *v1alpha1.Cluster {
	c := archived()
	c.Status.Conditions, c.Status.ContinuousArchiving.Missing = nil, uuid1+":200-300"
	archiveSays(c, metav1.ConditionFalse, core.ReasonArchiveGap, "the archive lacks "+uuid1+
		":200-300: take a Backup now")
	return c
}

func archiveFails() *v1alpha1.Cluster {
	c := archived()
	c.Status.Conditions = nil
	archiveSays(c, metav1.ConditionFalse, core.ReasonArchivingFailed,
		"nothing is archived: the store refuses the credentials")
	return c
}

func TestTheListOfBackups(t *testing.T) {
	for file, objects := range map[string][]client.Object{
		"backups.txt":              append(manyBackups(), archived()),
		"backups-gap.txt":          {gap(), completed("one", 20*time.Hour)},
		"backups-archive-down.txt": {archiveFails(), completed("one", 20*time.Hour)},
		"backups-no-archive.txt":   {stored(), completed("one", 20*time.Hour)},
		"backups-none.txt":         {archived()},
		"backups-no-store.txt":     {healthy().Cluster},
		"backups-gone.txt":         {completed("one", 20*time.Hour)},
	} {
		t.Run(file, func(t *testing.T) {
			var out strings.Builder
			if err := WriteBackups(&out, listOf(t, objects...)); err != nil {
				t.Fatal(err)
			}
			golden(t, file, out.String())
		})
	}
}

func TestTheListOfBackupsAsJSON(t *testing.T) {
	var out strings.Builder
	if err := encode(&out, "json", listOf(t, append(manyBackups(), archived())...)); err != nil {
		t.Fatal(err)
	}
	golden(t, "backups.json", out.String())
}

func TestBackupsOfAClusterThatNeverWasAreNotListed(t *testing.T) {
	_, err := newBackupScene(t, nil).backupFacts(context.Background())
	mustFail(t, err, "there is no Cluster demo in namespace shop")
}

func TestTheListKnowsNoOtherFormats(t *testing.T) {
	cmd := backupListCommand(nil)
	cmd.SetArgs([]string{"demo", "-o", "text"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	mustFail(t, cmd.Execute(), "-o text is not known; use json or yaml, or none for a table")
}

// expired is a Completed Backup that is not in the store any more.
func expired(name string, ago time.Duration) *v1alpha1.Backup {
	b := completed(name, ago)
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionBackupStored,
		Status: metav1.ConditionFalse,
		Reason: string(core.ReasonExpired), Message: "it had expired"})
	return b
}

func TestABackupThatIsGoneIsListedAndNotCounted(t *testing.T) {
	got := listOf(t, archived(), expired("gone", 5*time.Hour), completed("there", 2*time.Hour))
	if len(got.Backups) != 2 || got.Backups[0].Removed != "Expired" || got.Backups[1].Removed != "" ||
		got.Window.From == nil ||
		!got.Window.From.Equal(*got.Backups[1].Ended) {
		t.Errorf("%+v", got)
	}
	var text strings.Builder
	if err := WriteBackups(&text, got); err != nil || !strings.Contains(text.String(), "Completed, Expired") {
		t.Errorf("%s, %v", text.String(), err)
	}
	if got := listOf(t, archived(), expired("gone", 5*time.Hour)); got.Window.From != nil {
		t.Errorf("%+v", got.Window)
	}
}

func TestTheWindowOfAQuietClusterEndsWhereThePrimarySays(t *testing.T) {
	quiet := archived()
	quiet.Status.ContinuousArchiving.LastArchivedTime = second(7 * time.Hour)
	s := newBackupScene(t, []client.Object{quiet, completed("one", 5*time.Hour)})
	list := func() Backups {
		f, err := s.backupFacts(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return BuildBackups(f)
	}
	if w := list().Window; w.From != nil || !strings.Contains(w.Text, "nothing was archived since") {
		t.Errorf("before the primary says anything: %+v", w)
	}
	until := now.Add(-30 * time.Second)
	s.primarySays(until)
	got := list()
	if w := got.Window; w.From == nil || !w.To.Equal(until) || !w.holds(now.Add(-time.Hour)) || w.holds(now) {
		t.Errorf("%+v", w)
	}
	var text strings.Builder
	if err := WriteBackups(&text, got); err != nil ||
		!strings.Contains(text.String(), "(7h ago), complete until 30s ago") {
		t.Errorf("%s, %v", text.String(), err)
	}
	s.primary, s.unasked = word{}, errors.New("no answer within 3s")
	later := "or later: only the primary knows until when the archive is complete, " +
		"and demo-1 could not be asked (no answer within 3s)"
	if w := list().Window; w.From != nil || !strings.Contains(w.Text, later) {
		t.Errorf("the primary does not answer: %+v", w)
	}
}

// azureStore is a store in the account that a Secret names.
func azureStore(secret string) *v1alpha1.ObjectStoreSpec {
	account := &v1alpha1.SecretKeySelector{Name: secret, Key: "account"}
	return &v1alpha1.ObjectStoreSpec{Bucket: "bucket",
		AzureCredentials: &v1alpha1.AzureCredentials{StorageAccount: account}}
}

// TestTheWindowBeginsWhereTheArchiveLacksNothing passes over Backups that were begun before archiving was
// enabled, or before a gap that has been closed since.
func TestTheWindowBeginsWhereTheArchiveLacksNothing(t *testing.T) {
	c := archived()
	before, after := completed("before", 5*time.Hour), completed("after", 2*time.Hour)
	c.Status.ContinuousArchiving.CompleteSince = after.Status.StartedAt
	got := listOf(t, c, before, after)
	if from := got.Window.From; from == nil || !from.Equal(after.Status.StoppedAt.Time) {
		t.Errorf("%+v", got.Window)
	}
	if w := listOf(t, c, before).Window; w.From != nil || !strings.Contains(w.Text, "was begun later; take one") {
		t.Errorf("%+v", w)
	}
}

// TestTheWindowBeginsNoEarlierThanABackupWhoseJobWasBehind goes by the operator's clock where the other one is
// known to be wrong: a restore to a time that the backup holds more than is refused.
func TestTheWindowBeginsNoEarlierThanABackupWhoseJobWasBehind(t *testing.T) {
	behind := completed("behind", 2*time.Hour)
	behind.Status.StoppedAt = second(3 * time.Hour)
	if w := listOf(t, archived(), behind).Window; w.From == nil || !w.From.Equal(behind.Status.StartedAt.Time) {
		t.Errorf("%+v", w)
	}
	behind.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBackupCompleted,
		Status: metav1.ConditionTrue, Reason: v1alpha1.BackupCompleted, LastTransitionTime: *second(time.Hour)}}
	if w := listOf(t, archived(), behind).Window; w.From == nil || !w.From.Equal(second(time.Hour).Time) {
		t.Errorf("once the operator said that it is complete: %+v", w)
	}
}

func TestTheWindowIsThatOfTheAccount(t *testing.T) {
	atAzure, there := archived(), completed("there", 2*time.Hour)
	atAzure.Spec.Backup.ObjectStore, there.Status.ObjectStore = azureStore("ours"), azureStore("ours")
	if w := listOf(t, atAzure, there).Window; w.From == nil {
		t.Errorf("%+v", w)
	}
}

func TestTheWindowHasNoBoundsThatNothingWarrants(t *testing.T) {
	neverArchived, longAgo := archived(), archived()
	neverArchived.Status.ContinuousArchiving = nil
	longAgo.Status.ContinuousArchiving.LastArchivedTime = second(30 * time.Hour)
	elsewhere := completed("elsewhere", 2*time.Hour)
	elsewhere.Status.ObjectStore.Bucket = "other"
	atAzure, ofAnother := archived(), completed("of-another-account", 2*time.Hour)
	atAzure.Spec.Backup.ObjectStore = azureStore("ours")
	ofAnother.Status.ObjectStore = azureStore("theirs")
	for want, objects := range map[string][]client.Object{
		"nothing was archived yet":                {neverArchived, completed("one", time.Hour)},
		"nothing was archived since 2026-02-27":   {longAgo, completed("one", time.Hour)},
		"none of them lies where the archive":     {archived(), elsewhere},
		"none of them lies":                       {atAzure, ofAnother},
		"there is no Completed Backup; take one:": {archived(), failed("one", time.Hour)},
		"continuousArchiving is not enabled":      {stored(), completed("one", time.Hour)},
		"the Cluster is gone":                     {completed("one", time.Hour)},
	} {
		if w := listOf(t, objects...).Window; w.From != nil || w.To != nil || !strings.Contains(w.Text, want) {
			t.Errorf("want no bounds and %q, got %+v", want, w)
		}
	}
}

// TestABackupWhoseDataGoIsNotPromised: the manifest is removed first.
func TestABackupWhoseDataGoIsNotPromised(t *testing.T) {
	going := completed("going", time.Hour)
	going.DeletionTimestamp, going.Finalizers = second(time.Minute), []string{v1alpha1.FinalizerStoredBackup}
	going.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBackupStored,
		Status: metav1.ConditionUnknown, Reason: string(core.ReasonBackupRemovalFailed), Message: "the key is wrong"}}
	list := listOf(t, archived(), going)
	if text := phaseText(list.Backups[0]); text != "Completed, being deleted (RemovalFailed)" {
		t.Errorf("it is listed as %q", text)
	}
	if list.Window.From != nil {
		t.Errorf("the window is %+v", list.Window)
	}
	_, err := restoring(t, restoreWish{name: "fresh", backup: "going"}, true, archived(), going)
	if err == nil || !strings.Contains(err.Error(), "is being deleted, and its data with it (RemovalFailed)") {
		t.Errorf("a restore of it says %v", err)
	}
	f := healthy()
	f.Backups = []v1alpha1.Backup{*going}
	if short := backupsInShort(f); short.Last != "" {
		t.Errorf("the status says %+v", short)
	}
}

// TestTheWindowBeginsWithABackupThatOnlyTheStoreKnows checks that Backups that a history limit has deleted count, as
// long as their data are kept and the archive leads from there.
func TestTheWindowBeginsWithABackupThatOnlyTheStoreKnows(t *testing.T) {
	kept := second(200 * time.Hour)
	older, newer := completed("older", 5*time.Hour), completed("newer", 2*time.Hour)
	older.Status.Retention = &v1alpha1.BackupRetention{RanAt: *second(4 * time.Hour),
		KeptSince: second(300 * time.Hour)}
	newer.Status.Retention = &v1alpha1.BackupRetention{RanAt: *second(time.Hour), KeptSince: kept}
	for _, c := range []struct {
		since *metav1.Time
		want  time.Time
	}{
		{nil, kept.Time},
		{second(250 * time.Hour), kept.Time},
		{second(201 * time.Hour), older.Status.StoppedAt.Time}, // its backup may have begun before
		{second(100 * time.Hour), older.Status.StoppedAt.Time},
	} {
		cluster := archived()
		cluster.Status.ContinuousArchiving.CompleteSince = c.since
		if w := listOf(t, cluster, older, newer).Window; w.From == nil || !w.From.Equal(c.want) {
			t.Errorf("complete since %v: %+v, and not from %s", c.since, w, c.want)
		}
	}
}
