package verify

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
)

// A verification that is held back from the first one on has no other series than its schedule's.
func TestAScheduleHasSeriesBeforeAnyVerification(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, c := NewMetrics(reg), &v1alpha1.Cluster{}
	due := metav1.NewTime(time.Unix(1000, 0))
	const name = "cnmsql_cluster_backup_verification_"
	for _, tc := range []struct {
		schedule *v1alpha1.VerificationScheduleStatus
		want     map[string]float64
	}{
		{nil, map[string]float64{}},
		{&v1alpha1.VerificationScheduleStatus{NextScheduleTime: &due},
			map[string]float64{"due_timestamp_seconds": 1000, "held_back": 0}},
		{&v1alpha1.VerificationScheduleStatus{Problem: "the schedule cannot be read"},
			map[string]float64{"held_back": 1}},
		{nil, map[string]float64{}},
	} {
		c.Status.VerificationSchedule = tc.schedule
		m.Observe(c)
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range families {
			got = append(got, f.GetName())
			if value := f.GetMetric()[0].GetGauge().GetValue(); value != tc.want[f.GetName()[len(name):]] {
				t.Errorf("of %+v, %s is %v", tc.schedule, f.GetName(), value)
			}
		}
		if len(got) != len(tc.want) {
			t.Errorf("of %+v there is %q", tc.schedule, got)
		}
	}
}
