package backups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// gathered are the series, as "name{cluster} value" without what is common to all names.
func gathered(t *testing.T, from client.Reader) (out []string) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	NewMetrics(reg, from)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "cnmsql_cluster_backup_")
			out = append(out, fmt.Sprintf("%s{%s} %.0f", name, m.GetLabel()[0].GetValue(), m.GetGauge().GetValue()))
		}
	}
	slices.Sort(out)
	return out
}

func TestTheMetricsAreOfTheNewestBackups(t *testing.T) {
	ended := func(name, phase string, at, size int64) *v1alpha1.Backup {
		b := aBackup(name)
		b.Status = v1alpha1.BackupStatus{Phase: phase, Size: size, StoredSize: size / 2,
			StartedAt: &metav1.Time{Time: time.Unix(at-30, 0)}, StoppedAt: &metav1.Time{Time: time.Unix(at, 0)}}
		return b
	}
	other := ended("other", v1alpha1.BackupFailed, 500, 0)
	other.Spec.Cluster.Name = "db-2"
	w := newBackupWorld(t, ended("new", v1alpha1.BackupCompleted, 2000, 10), ended("old",
		v1alpha1.BackupCompleted, 1000, 90),
		ended("failed", v1alpha1.BackupFailed, 3000, 0), aBackup("running"), other)
	want := []string{"duration_seconds{db} 30", "failure_timestamp_seconds{db-2} 500",
		"failure_timestamp_seconds{db} 3000",
		"size_bytes{db} 10", "stored_bytes{db} 5", "success_timestamp_seconds{db} 2000"}
	if got := gathered(t, w); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestTheMetricsKnowWhoseABackupIs: a Cluster that was created again has none before its first,
// and what is being removed is none.
func TestTheMetricsKnowWhoseABackupIs(t *testing.T) {
	at := func(name string, created, ended int64) *v1alpha1.Backup {
		b := aBackup(name)
		b.CreationTimestamp = metav1.Unix(created, 0)
		b.Status = v1alpha1.BackupStatus{Phase: v1alpha1.BackupCompleted,
			StartedAt: &metav1.Time{Time: time.Unix(created+1, 0)}, StoppedAt: &metav1.Time{Time: time.Unix(ended, 0)}}
		return b
	}
	c := v1alpha1.Cluster{}
	c.Namespace, c.Name, c.CreationTimestamp = at("x", 0, 0).Namespace, "db", metav1.Unix(1000, 0)
	all := []v1alpha1.Backup{*at("theirs", 900, 1100), *at("mine", 1200, 1300), *at("going", 1400, 1500)}
	now := metav1.Now()
	all[2].DeletionTimestamp = &now
	clusters := []v1alpha1.Cluster{c}
	if of := newest(current(all[:1], clusters), (*v1alpha1.Backup).IsRestorable); len(of) != 0 {
		t.Errorf("of the earlier Cluster's: %v", of)
	}
	for _, b := range newest(current(all, clusters), (*v1alpha1.Backup).IsRestorable) {
		if b.Name != "mine" {
			t.Errorf("the newest is %s", b.Name)
		}
	}
	if got := current(all, nil); len(got) != len(all) {
		t.Errorf("a Cluster that is gone has %d of %d", len(got), len(all))
	}
}

func TestARemovalThatFailsIsCounted(t *testing.T) {
	fails := func(condition string, reason core.Reason) []metav1.Condition {
		return []metav1.Condition{{Type: condition, Status: metav1.ConditionUnknown, Reason: string(reason)}}
	}
	b, waits, c := going(), going(), goingCluster()
	waits.Name = "waits"
	b.Status.Conditions = append(b.Status.Conditions,
		fails(v1alpha1.ConditionBackupStored, core.ReasonBackupRemovalFailed)...)
	c.Status.Conditions = fails(v1alpha1.ConditionArchiveStored, core.ReasonBackupRemovalHeld)
	got := gathered(t, newBackupWorld(t, b, waits, c))
	if !slices.Contains(got, "removals_failing{db} 2") {
		t.Errorf("got %q", got)
	}
}

// TestRetentionThatIsHeldIsMetered asks the newest Backup after which it was looked what has expired.
func TestRetentionThatIsHeldIsMetered(t *testing.T) {
	looked := func(name string, at int64, reason core.Reason) *v1alpha1.Backup {
		b := aBackup(name)
		b.Status.Phase, b.Status.StoppedAt = v1alpha1.BackupCompleted, &metav1.Time{Time: time.Unix(at, 0)}
		if reason != "" {
			status := metav1.ConditionFalse
			if reason == core.ReasonRetained {
				status = metav1.ConditionTrue
			}
			b.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBackupRetention, Status: status,
				Reason: string(reason)}}
		}
		return b
	}
	held, well := looked("held", 1000, core.RetentionFailed), looked("well", 2000, core.ReasonRetained)
	young, unknown := looked("young", 3000, core.RetentionYoung), looked("unknown", 3000, "")
	is := func(value string) []string { return []string{"retention_held{db} " + value} }
	for name, tc := range map[string]struct {
		policy  string
		backups []client.Object
		want    []string
	}{
		"held":                       {"30d", []client.Object{held}, is("1")},
		"well":                       {"30d", []client.Object{well}, is("0")},
		"well since":                 {"30d", []client.Object{held, well}, is("0")},
		"held, and another just now": {"30d", []client.Object{held, unknown}, is("1")},
		"none is old enough":         {"30d", []client.Object{young}, is("0")},
		"it was not looked yet":      {"30d", []client.Object{unknown}, nil},
		"all is kept by now":         {"", []client.Object{held}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := archivingCluster()
			c.Spec.Backup.RetentionPolicy = tc.policy
			got := slices.DeleteFunc(gathered(t, newBackupWorld(t, append(tc.backups, c)...)), func(line string) bool {
				return !strings.HasPrefix(line, "retention_held")
			})
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

type noReader struct{ client.Reader }

func (noReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("the cache is not there yet")
}

func TestWhatIsNotKnownHasNoMetrics(t *testing.T) {
	if got := gathered(t, noReader{}); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// A Cluster that never had a Backup has no other series than its schedule's.
func TestTheMetricsOfSchedulesAreThereBeforeAnyBackup(t *testing.T) {
	scheduled := func(name, problem string, next int64) *v1alpha1.ScheduledBackup {
		sb := &v1alpha1.ScheduledBackup{}
		sb.Namespace, sb.Name, sb.Spec.Cluster.Name, sb.Status.Problem = "ns", name, "db", problem
		if next > 0 {
			sb.Status.NextScheduleTime = &metav1.Time{Time: time.Unix(next, 0)}
		}
		return sb
	}
	got := gathered(t, newBackupWorld(t, scheduled("a", "", 3000), scheduled("b", "Backup b-1 has not ended", 2000),
		scheduled("c", "", 0)))
	if want := []string{"due_timestamp_seconds{db} 2000", "schedules_held_back{db} 1"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
