package verify

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
)

// Metrics of verifications, one series a Cluster, made from its status: they survive the
// operator. A Cluster whose backups were never tried has none of them but those of its schedule.
type Metrics struct{ success, ended, succeeded, restore, due, heldBack *prometheus.GaugeVec }

// NewMetrics registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	vec := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cnmsql_cluster_backup_verification_" + name,
			Help: help},
			[]string{"namespace", "cluster"})
	}
	m := &Metrics{
		success:   vec("success", "1 when the last verification of the backups that ended succeeded, 0 when it failed"),
		ended:     vec("end_timestamp_seconds", "When the last verification of the backups ended"),
		succeeded: vec("success_timestamp_seconds", "When a verification of the backups last succeeded"),
		restore: vec("restore_seconds",
			"How long the last restore of a verification took, from nothing until it took writes"),
		due: vec("due_timestamp_seconds",
			"When the next verification of the schedule begins; in the past, it is held back"),
		heldBack: vec("held_back",
			"1 while no verification of the schedule begins, for a reason that is in the status"),
	}
	for _, v := range m.all() {
		reg.MustRegister(v)
	}
	return m
}

func (m *Metrics) all() []*prometheus.GaugeVec {
	return []*prometheus.GaugeVec{m.success, m.ended, m.succeeded, m.restore, m.due, m.heldBack}
}

// Observe sets what the status of a Cluster says. While a verification runs, what the one
// before it said stays.
func (m *Metrics) Observe(c *v1alpha1.Cluster) {
	m.observeSchedule(c)
	last := c.Status.LastVerification
	if last == nil {
		return
	}
	mine := prometheus.Labels{"namespace": c.Namespace, "cluster": c.Name}
	if last.LastSucceededAt != nil {
		m.succeeded.With(mine).Set(float64(last.LastSucceededAt.Unix()))
	}
	if last.RestoreSeconds > 0 {
		m.restore.With(mine).Set(float64(last.RestoreSeconds))
	}
	if last.EndedAt == nil || last.StartedAt == nil {
		return
	}
	success := 0.0
	if last.Phase == v1alpha1.VerificationSucceeded {
		success = 1
	}
	m.success.With(mine).Set(success)
	m.ended.With(mine).Set(float64(last.EndedAt.Unix()))
}

// observeSchedule sets what is to begin by itself: a verification that never began has no other
// series.
func (m *Metrics) observeSchedule(c *v1alpha1.Cluster) {
	st := c.Status.VerificationSchedule
	if st == nil || st.NextScheduleTime == nil {
		m.due.DeleteLabelValues(c.Namespace, c.Name)
	} else {
		m.due.WithLabelValues(c.Namespace, c.Name).Set(float64(st.NextScheduleTime.Unix()))
	}
	switch {
	case st == nil:
		m.heldBack.DeleteLabelValues(c.Namespace, c.Name)
	case st.Problem != "":
		m.heldBack.WithLabelValues(c.Namespace, c.Name).Set(1)
	default:
		m.heldBack.WithLabelValues(c.Namespace, c.Name).Set(0)
	}
}

// Forget drops the series of a Cluster that is gone.
func (m *Metrics) Forget(key types.NamespacedName) {
	for _, v := range m.all() {
		v.DeletePartialMatch(prometheus.Labels{"namespace": key.Namespace, "cluster": key.Name})
	}
}
