package operator

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
)

// Metrics of the operator, one series per cluster.
type Metrics struct {
	phase     *prometheus.GaugeVec
	diagnosis *prometheus.GaugeVec
	blocked   *prometheus.GaugeVec
	epoch     *prometheus.GaugeVec
	ready     *prometheus.GaugeVec
	authority *prometheus.GaugeVec
	events    *prometheus.CounterVec
	group     groupMetrics
}

// groupMetrics are of clusters whose instances are members of a group; the others
// have none.
type groupMetrics struct{ quorum, bootstrapped, size, members *prometheus.GaugeVec }

func newGroupMetrics(labels []string) groupMetrics {
	return groupMetrics{
		quorum: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cnmsql_cluster_gr_has_quorum",
			Help: "1 while a majority of the group is seen to be online and to agree"}, labels),
		bootstrapped: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cnmsql_cluster_gr_bootstrapped",
			Help: "1 once the group was made"}, labels),
		size: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cnmsql_cluster_gr_view_size",
			Help: "Largest size of the group that was seen; a majority is counted of it"}, labels),
		members: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cnmsql_cluster_gr_members",
			Help: "Number of members in each state"}, append(labels, "state")),
	}
}

func (m groupMetrics) all() []*prometheus.GaugeVec {
	return []*prometheus.GaugeVec{m.quorum, m.bootstrapped, m.size, m.members}
}

func (m groupMetrics) observe(mine prometheus.Labels, g *core.GroupStatus) {
	if g == nil {
		return
	}
	m.quorum.With(mine).Set(flag(g.HasQuorum))
	m.bootstrapped.With(mine).Set(flag(g.Bootstrapped))
	m.size.With(mine).Set(float64(g.ViewMax))
	for _, state := range []core.MemberState{core.MemberOnline, core.MemberRecovering, core.MemberOffline,
		core.MemberError, core.MemberUnreachable, core.MemberUnknown} {
		n := 0
		for _, member := range g.Members {
			if member.State == state {
				n++
			}
		}
		m.members.WithLabelValues(mine["namespace"], mine["cluster"], string(state)).Set(float64(n))
	}
}

func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// NewMetrics registers the operator's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	labels := []string{"namespace", "cluster"}
	m := &Metrics{
		phase: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cnmsql_cluster_phase",
			Help: "1 for the phase that the cluster is in"}, append(labels, "phase")),
		diagnosis: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cnmsql_cluster_diagnosis",
			Help: "1 for what is known of the primary"}, append(labels, "diagnosis")),
		blocked: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cnmsql_cluster_blocked",
			Help: "1 for the refusal that stands in the way of all; no series while nothing does"},
			append(labels, "reason")),
		epoch: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cnmsql_cluster_primary_epoch",
			Help: "Epoch of the primary; it grows by one with every promotion"}, labels),
		ready: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cnmsql_cluster_ready_instances",
			Help: "Number of ready instances"}, labels),
		authority: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "cnmsql_cluster_certificate_authority_ends_timestamp_seconds",
			Help: "When the certificate authority of the cluster ends, and all certificates with it"}, labels),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cnmsql_cluster_events_total",
			Help: "What was done or refused, by reason"}, append(labels, "reason", "type")),
		group: newGroupMetrics(labels),
	}
	for _, vec := range m.group.all() {
		reg.MustRegister(vec)
	}
	reg.MustRegister(m.phase, m.diagnosis, m.blocked, m.epoch, m.ready, m.authority, m.events)
	return m
}

// Observe sets a cluster's metrics from a plan.
func (m *Metrics) Observe(c *v1alpha1.Cluster, plan core.Plan) {
	mine := prometheus.Labels{"namespace": c.Namespace, "cluster": c.Name}
	m.phase.DeletePartialMatch(mine)
	m.phase.WithLabelValues(c.Namespace, c.Name, string(plan.Status.Phase)).Set(1)
	m.diagnosis.DeletePartialMatch(mine)
	m.diagnosis.WithLabelValues(c.Namespace, c.Name, string(plan.Status.Diagnosis)).Set(1)
	m.blocked.DeletePartialMatch(mine)
	if b := plan.Status.Blocked; b != nil {
		m.blocked.WithLabelValues(c.Namespace, c.Name, string(b.Reason)).Set(1)
	}
	m.epoch.With(mine).Set(float64(plan.Status.Epoch))
	m.ready.With(mine).Set(float64(plan.Status.Ready))
	m.group.observe(mine, plan.Status.Group)
	for _, e := range plan.Events {
		kind := "Normal"
		if e.Warning {
			kind = "Warning"
		}
		m.events.WithLabelValues(c.Namespace, c.Name, string(e.Reason), kind).Inc()
	}
}

// Unread sets those of a cluster that cannot be read: nothing else is known of it.
func (m *Metrics) Unread(key types.NamespacedName) {
	m.Forget(key)
	m.blocked.WithLabelValues(key.Namespace, key.Name, string(core.ReasonUnreadable)).Set(1)
}

// ObserveAuthority sets when a cluster's certificate authority ends. One that could not be read or
// has ended leaves what was known.
func (m *Metrics) ObserveAuthority(c *v1alpha1.Cluster, ca *pki.CA) {
	if ca != nil {
		m.authority.WithLabelValues(c.Namespace, c.Name).Set(float64(ca.Ends().Unix()))
	}
}

// Forget drops the series of a cluster that is gone.
func (m *Metrics) Forget(key types.NamespacedName) {
	mine := prometheus.Labels{"namespace": key.Namespace, "cluster": key.Name}
	for _, vec := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{m.phase, m.diagnosis, m.blocked, m.epoch, m.ready, m.authority, m.events} {
		vec.DeletePartialMatch(mine)
	}
	for _, vec := range m.group.all() {
		vec.DeletePartialMatch(mine)
	}
}
