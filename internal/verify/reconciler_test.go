package verify

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/verify"
)

func TestAVerificationOnRequest(t *testing.T) {
	w := newWorld(t, db())
	w.said = sound
	w.request("r1")
	s := w.untilEnd()
	if s.Phase != v1alpha1.VerificationSucceeded || s.Request != "r1" || s.BackupID != "b1" ||
		s.RestoreSeconds != 70 || s.Tables != 40 ||
		s.TablesChecked != 40 || s.RestoredTo != sound.Executed.String() || !s.RestoredToTime.Time.Equal(day) ||
		s.LastSucceededAt == nil {
		t.Errorf("it says %+v", s)
	}
	cond := meta.FindStatusCondition(w.cluster("db").Status.Conditions, v1alpha1.ConditionBackupsVerified)
	if cond == nil || cond.Status != metav1.ConditionTrue || cond.Reason != string(core.ReasonVerificationSucceeded) {
		t.Errorf("the condition is %+v", cond)
	}
	told := w.Events()
	if len(told) != 2 || !strings.Contains(told[0], "VerificationStarted") ||
		!strings.Contains(told[1], "VerificationSucceeded backup b1 was restored in 1m10s") {
		t.Errorf("it told %q", told)
	}
	if len(w.asked) == 0 || !strings.HasPrefix(w.asked[0], "db-verify/db-verify-1 ") {
		t.Errorf("it asked %q", w.asked)
	}
	if calls := w.Calls; w.look() != 0 || w.Calls != calls+1 {
		t.Errorf("a Cluster of which nothing is wanted costs %d requests", w.Calls-calls)
	}
}

func TestTheCopyIsMarkedAndLeadsNobodyToIt(t *testing.T) {
	w := newWorld(t, db(func(c *v1alpha1.Cluster) {
		c.Spec.ImageName = "mysql:8.4"
		c.Spec.MySQL.Parameters = map[string]string{"event-scheduler": "ON", "innodb_page_size": "8k"}
		c.Spec.MySQL.SemiSync = &v1alpha1.SemiSyncSpec{Enabled: true}
		c.Spec.Managed = &v1alpha1.ManagedSpec{}
		c.Spec.InheritedMetadata = &v1alpha1.InheritedMetadata{Labels: map[string]v1alpha1.LabelValue{"app": "shop"},
			Annotations: map[string]string{"a": "b"}}
		c.Spec.Bootstrap = &v1alpha1.BootstrapSpec{InitDB: &v1alpha1.InitDBSpec{Database: "shop",
			PostInitSQL: []string{"SELECT 1"}}}
	}))
	w.request("r1")
	for range 3 {
		w.look()
	}
	c := w.cluster("db-verify")
	if c == nil {
		t.Fatal("there is none")
	}
	if !metav1.IsControlledBy(c, w.cluster("db")) || c.Labels[v1alpha1.LabelVerifies] != "db" ||
		c.Annotations[v1alpha1.AnnotationThrowAway] == "" {
		t.Errorf("it is marked with %+v", c.ObjectMeta)
	}
	s := c.Spec
	if s.Instances != 1 || s.ImageName != "mysql:8.4" || s.Storage.WhenDeleted != v1alpha1.DeleteVolume ||
		s.Storage.Size != "10Gi" || s.MySQL.SemiSync != nil ||
		s.Managed != nil || len(s.InheritedMetadata.Labels) > 0 || s.InheritedMetadata.Annotations["a"] != "b" ||
		s.Backup.ObjectStore != nil || s.Backup.MaxBytesPerSecond != 7 {
		t.Errorf("its spec is %+v", s)
	}
	if p := s.MySQL.Parameters; len(p) != 2 || p["event_scheduler"] != "OFF" || p["innodb_page_size"] != "8k" {
		t.Errorf("its parameters are %v", p)
	}
	if b := s.Bootstrap; b.Recovery.Source != "db" || b.InitDB.Database != "shop" || len(b.InitDB.PostInitSQL) > 0 ||
		s.ExternalClusters[0].ObjectStore.Bucket != "b" {
		t.Errorf("it begins with %+v", b)
	}
}

// archiving is a Cluster of which a replica can be summed up.
func archiving(c *v1alpha1.Cluster) {
	c.Spec.Backup.ContinuousArchiving = &v1alpha1.ContinuousArchivingSpec{Enabled: true, TargetRPOSeconds: 30}
	for i, role := range []string{v1alpha1.RolePrimary, v1alpha1.RoleReplica, v1alpha1.RoleReplica} {
		c.Status.InstancesReported = append(c.Status.InstancesReported, v1alpha1.InstanceStatus{
			Name: fmt.Sprintf("db-%d", i+1), Role: role, Ready: true, State: string(core.Running)})
	}
}

func TestRowsAreComparedWithAReplica(t *testing.T) {
	for sum, reason := range map[string]core.Reason{"1-1": "", "2-2": core.VerifyDiffer} {
		w := newWorld(t, db(archiving))
		w.said = sound
		w.said.Sample = &verify.Sample{Executed: sound.Executed.String(),
			Sums: []verify.Sum{{Table: "shop.a", Rows: 2, Sum: "1-1"}}}
		w.said.Sums = []verify.Sum{{Table: "shop.a", Rows: 2, Sum: sum}}
		w.request("r1")
		w.look()
		w.look()
		if w.asked[0] != "db/db-3 sample 2026-11-24T03:00:10Z" {
			t.Errorf("it asked %q", w.asked)
		}
		taken := w.last().Sample
		if taken == nil || taken.Executed != sound.Executed.String() || len(taken.Tables) != 1 {
			t.Fatalf("it took %+v", taken)
		}
		for w.cluster("db-verify") == nil {
			w.look()
		}
		c := w.cluster("db-verify")
		if late := c.CreationTimestamp.Sub(taken.TakenAt.Time); late < 30*time.Second || late > time.Minute {
			t.Errorf("it was made %s after the sample was taken, which is archived within 30 s", late)
		}
		if target := c.Spec.Bootstrap.Recovery.RecoveryTarget; target == nil ||
			target.TargetGTID != sound.Executed.String() {
			t.Errorf("it is restored to %+v", target)
		}
		s := w.untilEnd()
		if s.Reason != string(reason) || s.TablesCompared != 1 || s.Sample != nil {
			t.Errorf("it says %+v", s)
		}
		if last := w.sums[len(w.sums)-1]; !slices.Equal(last, []string{"shop.a"}) {
			t.Errorf("it asked for the sums of %q", w.sums)
		}
	}
}

func TestWhatIsFoundIsSaid(t *testing.T) {
	w := newWorld(t, db())
	w.said = control.CheckReport{Done: true, Tables: 3, Checked: 3, BackupID: "b1",
		Damaged: []control.CheckFinding{{Table: "shop.orders", Message: "Corrupt"}}}
	w.request("r1")
	s := w.untilEnd()
	if s.Phase != v1alpha1.VerificationFailed || s.Reason != string(core.VerifyDamaged) ||
		!strings.Contains(s.Message, "shop.orders (Corrupt)") {
		t.Errorf("it says %+v", s)
	}
	cond := meta.FindStatusCondition(w.cluster("db").Status.Conditions, v1alpha1.ConditionBackupsVerified)
	if cond == nil || cond.Status != metav1.ConditionFalse || cond.Reason != string(core.VerifyDamaged) {
		t.Errorf("the condition is %+v", cond)
	}
	if told := w.Events(); !strings.Contains(told[len(told)-1], "Warning VerificationFailed") {
		t.Errorf("it told %q", told)
	}
}

// TestAVerificationFailsWhenTheNewestBackupWasPassedOver as the status of the throw-away Cluster has it.
func TestAVerificationFailsWhenTheNewestBackupWasPassedOver(t *testing.T) {
	w := newWorld(t, db())
	w.said = sound
	w.request("r1")
	for w.cluster("db-verify") == nil {
		w.look()
	}
	w.Aside(func() error {
		c := w.cluster("db-verify")
		c.Status.Restore = &v1alpha1.RestoreStatus{Stage: v1alpha1.RestoreCompleted, BackupID: "b1",
			PassedOver: []v1alpha1.PassedOverBackup{{BackupID: "b2", Reason: "PartMissing"}}}
		return w.Status().Update(w.Context(), c)
	})
	if s := w.untilEnd(); s.Phase != v1alpha1.VerificationFailed || s.Reason != string(core.VerifyPassedOver) ||
		!strings.Contains(s.Message, "backups newer than b1 cannot be used: b2 (PartMissing)") {
		t.Errorf("it says %+v", s)
	}
	cond := meta.FindStatusCondition(w.cluster("db").Status.Conditions, v1alpha1.ConditionBackupsVerified)
	if cond == nil || cond.Status != metav1.ConditionFalse || cond.Reason != string(core.VerifyPassedOver) {
		t.Errorf("the condition is %+v", cond)
	}
}

func TestBackupsOfAnEarlierClusterOfTheNameAreRefused(t *testing.T) {
	w := newWorld(t, db())
	w.said = sound
	w.request("r1")
	for w.cluster("db-verify") == nil {
		w.look()
	}
	w.Aside(func() error {
		c := w.cluster("db-verify")
		c.Status.Blocked = &v1alpha1.Notice{Reason: string(core.InstanceRestoreNotOurs), Message: "its UID is u-1"}
		return w.Status().Update(w.Context(), c)
	})
	for range 3 {
		w.look()
	}
	if s := w.last(); s.Phase != v1alpha1.VerificationFailed || s.Reason != string(core.VerifyNotOurs) ||
		s.LastSucceededAt != nil {
		t.Errorf("it says %+v", s)
	}
	cond := meta.FindStatusCondition(w.cluster("db").Status.Conditions, v1alpha1.ConditionBackupsVerified)
	if cond == nil || cond.Status != metav1.ConditionFalse || cond.Reason != string(core.VerifyNotOurs) {
		t.Errorf("the condition is %+v", cond)
	}
}

func TestAClusterOfTheNameIsNotTouched(t *testing.T) {
	other := db(func(c *v1alpha1.Cluster) { c.Name, c.UID = "db-verify", "other" })
	w := newWorld(t, db(), other)
	w.request("r1")
	if s := w.untilEnd(); s.Reason != string(core.VerifyNameTaken) {
		t.Errorf("it says %+v", s)
	}
	if w.cluster("db-verify").UID != "other" {
		t.Error("it is gone")
	}
}

func TestARefusalOfKubernetesIsTold(t *testing.T) {
	w := newWorld(t, db())
	w.Refuse = apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("clusters").GroupResource(), "db-verify",
		errors.New("exceeded quota"))
	w.request("r1")
	if s := w.untilEnd(); s.Reason != string(core.VerifyCopyRefused) || !strings.Contains(s.Message, "exceeded quota") {
		t.Errorf("it says %+v", s)
	}
}

func TestAVerificationWaitsForABackup(t *testing.T) {
	b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "nightly-1"}}
	b.Spec.Cluster.Name, b.Status.Phase = "db", v1alpha1.BackupRunning
	w := newWorld(t, db(), b)
	w.said = sound
	w.request("r1")
	w.look()
	if s := w.last(); s.Phase != v1alpha1.VerificationPending || !strings.Contains(s.Message, "nightly-1") ||
		w.cluster("db-verify") != nil {
		t.Errorf("it says %+v", s)
	}
	b.Status.Phase = v1alpha1.BackupCompleted
	w.Aside(func() error { return w.Status().Update(w.Context(), b) })
	if s := w.untilEnd(); s.Phase != v1alpha1.VerificationSucceeded {
		t.Errorf("it says %+v", s)
	}
}

func TestTheNextOneWaitsUntilTheVolumeOfTheLastIsGone(t *testing.T) {
	labels := map[string]string{v1alpha1.LabelCluster: "db-verify"}
	owner := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Cluster",
		Name: "db-verify", UID: "earlier"}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db-verify-1",
		Labels: labels, OwnerReferences: []metav1.OwnerReference{owner}}}
	kept := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns",
		Name: "db-verify-2", Labels: labels}}
	w := newWorld(t, db(), claim, kept)
	w.said = sound
	w.request("r1")
	for range 5 {
		if wake := w.look(); wake == 0 || w.last().Phase != "" {
			t.Fatalf("it wakes in %s, and says %+v", wake, w.last())
		}
	}
	w.Aside(func() error { return w.Delete(w.Context(), claim) })
	if s := w.untilEnd(); s.Phase != v1alpha1.VerificationSucceeded {
		t.Errorf("it says %+v", s)
	}
}

func TestAnInstanceThatIsSilentIsAskedAgain(t *testing.T) {
	w := newWorld(t, db())
	w.said, w.silent = sound, errors.New("connection refused")
	w.request("r1")
	for range 6 {
		w.look()
		w.restored()
	}
	if s := w.last(); s.Phase != v1alpha1.VerificationChecking || !strings.Contains(s.Message, "connection refused") {
		t.Errorf("it says %+v", s)
	}
	w.silent = nil
	if s := w.untilEnd(); s.Phase != v1alpha1.VerificationSucceeded {
		t.Errorf("it says %+v", s)
	}
	if orders := slices.Compact(slices.Clone(w.asked)); len(orders) != 1 || len(w.asked) < 2 {
		t.Errorf("it gave more than one order: %q", w.asked)
	}
}

func TestTheScheduleBeginsOne(t *testing.T) {
	w := newWorld(t,
		db(func(c *v1alpha1.Cluster) { c.Spec.Backup.Verify = &v1alpha1.VerifySpec{Schedule: "0 0 4 * * *"} }))
	w.said = sound
	if wake := w.look(); wake == 0 || wake > 10*time.Minute || w.last().Phase != "" {
		t.Errorf("it wakes in %s, and says %+v", wake, w.last())
	}
	if s := w.cluster("db").Status.VerificationSchedule; s == nil ||
		!s.NextScheduleTime.Time.Equal(day.Add(time.Hour)) || s.Problem != "" {
		t.Errorf("the schedule says %+v", s)
	}
	w.Clock = day.Add(time.Hour)
	s := w.untilEnd()
	if s.Phase != v1alpha1.VerificationSucceeded || !s.ScheduledFor.Time.Equal(day.Add(time.Hour)) {
		t.Errorf("it says %+v", s)
	}
	if st := w.cluster("db").Status.VerificationSchedule; !st.LastScheduleTime.Time.Equal(day.Add(time.Hour)) ||
		!st.NextScheduleTime.Time.Equal(day.Add(25*time.Hour)) {
		t.Errorf("the schedule says %+v", st)
	}
	for range 5 {
		calls := w.Calls
		if wake := w.look(); wake == 0 || wake > 10*time.Minute || w.Calls != calls+1 {
			t.Errorf("it wakes in %s, after %d requests", wake, w.Calls-calls)
		}
	}
	if again := w.last(); !again.StartedAt.Equal(s.StartedAt) {
		t.Errorf("it began again: %+v", again)
	}
	if told := w.Events(); len(told) != 2 {
		t.Errorf("it told %q", told)
	}
}

func TestAClusterThatChangesAllTheTimeIsNotLookedAtEachTime(t *testing.T) {
	w := newWorld(t, db())
	w.request("r1")
	w.look()
	for range 5 {
		calls := w.Calls
		w.Clock = w.Clock.Add(-10*time.Second + 100*time.Millisecond)
		if wake := w.look(); wake <= 0 || wake > time.Second || w.Calls != calls+1 {
			t.Errorf("it wakes in %s, after %d requests", wake, w.Calls-calls)
		}
	}
}

func TestAScheduleThatCannotBeReadIsToldOnce(t *testing.T) {
	w := newWorld(t,
		db(func(c *v1alpha1.Cluster) { c.Spec.Backup.Verify = &v1alpha1.VerifySpec{Schedule: "0 4 * * *"} }))
	for range 3 {
		w.look()
	}
	told := w.Events()
	if len(told) != 1 || !strings.Contains(told[0],
		`VerificationHeldBack spec.backup.verify.schedule "0 4 * * *" has five fields`) {
		t.Errorf("it told %q", told)
	}
	c := w.cluster("db")
	c.Spec.Backup.Verify.Schedule = "0 0 4 * * *"
	w.Aside(func() error { return w.Update(w.Context(), c) })
	w.look()
	if s := w.cluster("db").Status.VerificationSchedule; s.Problem != "" ||
		!s.NextScheduleTime.Time.Equal(day.Add(time.Hour)) {
		t.Errorf("it says %+v", s)
	}
	c = w.cluster("db")
	c.Spec.Backup.Verify = nil
	w.Aside(func() error { return w.Update(w.Context(), c) })
	w.look()
	if s := w.cluster("db").Status.VerificationSchedule; s != nil {
		t.Errorf("without a schedule it says %+v", s)
	}
}

// TestEachCallMayFail: whichever call fails, before or after it was carried out, the
// verification is made once and ends.
func TestEachCallMayFail(t *testing.T) {
	for _, late := range []bool{false, true} {
		for failAt := 1; ; failAt++ {
			w := newWorld(t, db())
			w.said, w.FailAt, w.Late = sound, failAt, late
			w.request("r1")
			s := w.untilEnd()
			if s.Phase != v1alpha1.VerificationSucceeded || s.Request != "r1" {
				t.Fatalf("call %d, late %t: %+v", failAt, late, s)
			}
			if w.Calls < failAt {
				break
			}
		}
	}
}

func TestMetricsAreOfTheStatus(t *testing.T) {
	w := newWorld(t, db())
	w.said = sound
	w.request("r1")
	w.untilEnd()
	scrape := func() string {
		answer := httptest.NewRecorder()
		promhttp.HandlerFor(w.reg, promhttp.HandlerOpts{}).ServeHTTP(answer,
			httptest.NewRequest("GET", "/metrics", nil))
		return answer.Body.String()
	}
	text := scrape()
	for _, want := range []string{`verification_success{cluster="db",namespace="ns"} 1`,
		`verification_restore_seconds{cluster="db",namespace="ns"} 70`, `verification_end_timestamp_seconds{`,
		`verification_success_timestamp_seconds{`} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in %s", want, text)
		}
	}
	w.Aside(func() error { return w.Delete(w.Context(), w.cluster("db")) })
	w.look()
	if text := scrape(); strings.Contains(text, "db") {
		t.Errorf("of a Cluster that is gone there is %s", text)
	}
}
