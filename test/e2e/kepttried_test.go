//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// verifiedByTheClock has the newest backup tried at the time that spec.backup.verify says. What came of it,
// and how long a restore takes, stands in the status, in an event and in the metrics.
func (b *backedUp) verifiedByTheClock() {
	b.sql("CREATE TABLE IF NOT EXISTS app.tried (id INT PRIMARY KEY)")
	b.sql("REPLACE INTO app.tried VALUES (1), (2), (3)")
	b.backUp("tried", "")
	s := b.completes("tried")
	at := time.Now().UTC().Add(15 * time.Second).Truncate(time.Second)
	b.patches(fmt.Sprintf(`{"spec":{"backup":{"verify":{"schedule":"%d %d %d * * *"}}}}`, at.Second(), at.Minute(),
		at.Hour()))
	c := b.becomes(6*time.Minute, func(c *v1alpha1.Cluster) bool {
		v := c.Status.LastVerification
		return v != nil && v.ScheduledFor != nil && v.EndedAt != nil && v.ClusterUID == ""
	})
	v, schedule := c.Status.LastVerification, c.Status.VerificationSchedule
	b.says(v.Phase+" "+v.Reason+" "+v.Message, v1alpha1.VerificationSucceeded, "backup "+s.BackupID+" was restored in",
		fmt.Sprintf("its %d tables are sound", v.Tables))
	took := v.EndedAt.Sub(v.StartedAt.Time)
	if v.BackupID != s.BackupID || v.RestoreSeconds < 1 || v.RestoreSeconds > int64(took.Seconds())+1 ||
		v.TablesCompared < 1 || !v.ScheduledFor.Time.Equal(at) || v.StartedAt.Sub(at) > 10*time.Second {
		b.t.Errorf("it was to begin at %s, and took %s: %+v", at, took, v)
	}
	if schedule == nil || schedule.Problem != "" || !schedule.LastScheduleTime.Time.Equal(at) ||
		!schedule.NextScheduleTime.Time.Equal(at.Add(24*time.Hour)) {
		b.t.Errorf("the next one is a day after %s: %+v", at, schedule)
	}
	if !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionBackupsVerified) {
		b.t.Errorf("%+v", c.Status.Conditions)
	}
	if !slices.ContainsFunc(b.events(), func(e corev1.Event) bool {
		return e.Reason == string(core.ReasonVerificationSucceeded) && e.Message == v.Message
	}) {
		b.t.Errorf("no event says %q", v.Message)
	}
	leader := b.leader()
	is := func(name string, wanted float64) { b.measures(leader, "backup_verification_"+name, wanted) }
	is("success", 1)
	is("restore_seconds", float64(v.RestoreSeconds))
	is("end_timestamp_seconds", float64(v.EndedAt.Unix()))
	is("success_timestamp_seconds", float64(v.EndedAt.Unix()))
	is("due_timestamp_seconds", float64(at.Add(24*time.Hour).Unix()))
	b.plugin([]string{"backup", "list", b.key.Name}, "Verified", "yes, ", v.Message)
	b.patches(`{"spec":{"backup":{"verify":null}}}`)
	b.kubectl("-n", b.key.Namespace, "wait", "--for=delete", "pod,pvc", "-l", v1alpha1.LabelCluster+"="+b.key.Name+
		"-verify", "--timeout=2m")
}

// patches changes the Cluster.
func (b *backedUp) patches(patch string) {
	b.t.Helper()
	b.kubectl("-n", b.key.Namespace, "patch", "cluster", b.key.Name, "--type=merge", "-p", patch)
}

// measures waits until the operator that leads has that value of a metric of the Cluster.
func (b *backedUp) measures(leader *corev1.Pod, name string, wanted float64) {
	b.t.Helper()
	series := fmt.Sprintf("cnmsql_cluster_%s{cluster=%q,namespace=%q} ", name, b.key.Name, b.key.Namespace)
	is := "none"
	err := wait.PollUntilContextTimeout(b.ctx, 200*time.Millisecond, 20*time.Second, true,
		func(ctx context.Context) (bool, error) {
			for line := range strings.Lines(b.metrics(ctx, leader)) {
				if value, found := strings.CutPrefix(line, series); found {
					is = strings.TrimSpace(value)
				}
			}
			value, err := strconv.ParseFloat(is, 64)
			return err == nil && value == wanted, nil
		})
	if err != nil {
		b.t.Errorf("%sis %s, and not %v: %v", series, is, wanted, err)
	}
}

// metrics are those of an operator.
func (b *backedUp) metrics(ctx context.Context, operator *corev1.Pod) string {
	b.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+operator.Status.PodIP+":8080/metrics", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(res.Body) // what is cut off lacks the series
	return string(text)
}

// forgottenWithoutItsStore deletes a Backup with which its data go while their store cannot be reached. The
// Backup says what keeps it and what to do; it goes when it is to be forgotten, and its data can be
// restored.
func (b *backedUp) forgottenWithoutItsStore() {
	b.backUp("unwanted", "  reclaimPolicy: Delete\n")
	s := b.completes("unwanted")
	out, err := b.tryPlugin("backup", "forget", "unwanted")
	if err == nil {
		b.t.Error("a Backup that is not being deleted is forgotten")
	}
	b.says(out, "is not being deleted: nothing was done", " delete backups.")
	b.storeListensOn(7071)
	b.t.Cleanup(func() { b.storeListensOn(7070) })
	b.kubectl("-n", b.key.Namespace, "delete", "backup", "unwanted", "--wait=false")
	waits := b.awaits("unwanted", time.Minute, func(s *v1alpha1.BackupStatus) bool {
		is := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionBackupStored)
		return is != nil && strings.Contains(is.Message, "unwanted-remove")
	})
	is := meta.FindStatusCondition(waits.Conditions, v1alpha1.ConditionBackupStored)
	b.says(string(is.Status)+" "+is.Reason+": "+is.Message, "Unknown RemovalWaits", "kubectl logs",
		"kubectl cnmsql backup forget unwanted -n "+b.key.Namespace)
	b.plugin([]string{"backup", "list", b.key.Name}, "being deleted")
	b.plugin([]string{"backup", "forget", "unwanted"}, "is forgotten", s.DestinationPath+"/base/"+s.BackupID,
		" restore "+b.key.Name+" --name NEW --backup-id "+s.BackupID)
	b.kubectl("-n", b.key.Namespace, "wait", "--for=delete", "backup/unwanted", "job/unwanted-remove", "--timeout=1m")
	b.storeListensOn(7070)
	b.areGood(s)
}

// storeListensOn leads the store's Service to that port; nobody listens on another than 7070.
func (b *backedUp) storeListensOn(port int) {
	b.t.Helper()
	b.kubectl("-n", b.store.Namespace, "patch", "service", "s3", "--type=json", "-p", fmt.Sprintf(
		`[{"op":"replace","path":"/spec/ports/0/targetPort","value":%d}]`, port))
}
