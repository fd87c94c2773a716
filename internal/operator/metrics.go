package operator

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
)

// Metrics of the operator, one series per cluster.
type Metrics struct {
	phase, diagnosis, blocked, notices, durable                         *present
	writable, epoch, ready, wanted, diverged, broken, looked, authority *prometheus.GaugeVec
	events                                                              *prometheus.CounterVec
	group                                                               groupMetrics
	// met are the Clusters that have a moment of a look.
	met sync.Map
}

// MeterLog has the lines counted that were dropped from the operator's log.
func MeterLog(reg prometheus.Registerer, dropped func() uint64) {
	if dropped == nil {
		return
	}
	reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "cnmsql_operator_log_dropped_lines_total",
		Help: "Lines of the operator's log that were dropped, for nobody read its output"},
		func() float64 { return float64(dropped()) }))
}

// clusterLabels are those of every metric of the operator.
var clusterLabels = []string{"namespace", "cluster"}

func gaugeOf(name, help string, more ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cnmsql_cluster_" + name, Help: help},
		slices.Concat(clusterLabels, more))
}

// groupMetrics are of clusters whose instances are members of a group; the others
// have none.
type groupMetrics struct{ quorum, bootstrapped, size, members *prometheus.GaugeVec }

func newGroupMetrics() groupMetrics {
	return groupMetrics{
		quorum:       gaugeOf("gr_has_quorum", "1 while a majority of the group is seen to be online and to agree"),
		bootstrapped: gaugeOf("gr_bootstrapped", "1 once the group was made"),
		size:         gaugeOf("gr_view_size", "Largest size of the group that was seen; a majority is counted of it"),
		members:      gaugeOf("gr_members", "Number of members in each state", "state"),
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
	m := &Metrics{
		phase:     newPresent("phase", "phase", "1 for the phase that the cluster is in"),
		diagnosis: newPresent("diagnosis", "diagnosis", "1 for what is known of the primary"),
		blocked: newPresent("blocked", "reason",
			"1 for the refusal that stands in the way of all; no series while nothing does"),
		notices: newPresent("notice", "reason", "1 for the reason of each notice that stands; no series of any other"),
		durable: newPresent("durable", "status",
			"1 for the status of the condition Durable; no series where no acknowledgements are wished"),
		writable: gaugeOf("writable", "1 while the primary is known to take writes, and nothing to keep their commits "+
			"from ending; no series before there was a primary"),
		epoch:    gaugeOf("primary_epoch", "Epoch of the primary; it grows by one with every promotion"),
		ready:    gaugeOf("ready_instances", "Number of ready instances"),
		wanted:   gaugeOf("wanted_instances", "Number of instances that the spec asks for"),
		diverged: gaugeOf("diverged_instances", "Number of instances with transactions that the primary lacks"),
		broken:   gaugeOf("broken_replicas", "Number of replicas whose replication stopped with an error"),
		looked: gaugeOf("looked_timestamp_seconds", "When the operator last ended a look at the cluster, and could "+
			"write down what it decided; before the first such look, when it first met the cluster"),
		authority: gaugeOf("certificate_authority_ends_timestamp_seconds",
			"When the certificate authority of the cluster ends, and all certificates with it"),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cnmsql_cluster_events_total",
			Help: "What was done or refused, by reason"}, slices.Concat(clusterLabels, []string{"reason", "type"})),
		group: newGroupMetrics(),
	}
	for _, vec := range m.gauges() {
		reg.MustRegister(vec)
	}
	for _, g := range m.labels() {
		reg.MustRegister(g.vec)
	}
	reg.MustRegister(m.events)
	return m
}

func (m *Metrics) labels() []*present {
	return []*present{m.phase, m.diagnosis, m.blocked, m.notices, m.durable}
}

func (m *Metrics) gauges() []*prometheus.GaugeVec {
	return append(m.group.all(), m.writable, m.epoch, m.ready, m.wanted, m.diverged, m.broken, m.looked, m.authority)
}

// Meets sets, of a cluster that has none, the moment from which a look that does not end is counted. An
// operator that began after the trouble did would have no moment to grow old otherwise.
func (m *Metrics) Meets(of types.NamespacedName) {
	if _, before := m.met.LoadOrStore(of, true); !before {
		m.looked.WithLabelValues(of.Namespace, of.Name).SetToCurrentTime()
	}
}

// Observe sets how a cluster is, as a plan has found it: whether the plan can be published or not.
func (m *Metrics) Observe(c *v1alpha1.Cluster, plan core.Plan) {
	of, s := client.ObjectKeyFromObject(c), &plan.Status
	m.phase.set(of, string(s.Phase))
	m.diagnosis.set(of, string(s.Diagnosis))
	m.durable.set(of, string(s.Durable))
	blocked := ""
	if s.Blocked != nil {
		blocked = string(s.Blocked.Reason)
	}
	m.blocked.set(of, blocked)
	notices := make([]string, len(s.Notices))
	for i := range s.Notices {
		notices[i] = string(s.Notices[i].Reason)
	}
	m.notices.set(of, notices...)
	if s.EstablishedAt.IsZero() {
		m.writable.DeleteLabelValues(of.Namespace, of.Name)
	} else {
		m.writable.WithLabelValues(of.Namespace, of.Name).Set(flag(s.Diagnosis.EndsCommits()))
	}
	for vec, value := range map[*prometheus.GaugeVec]int{m.ready: s.Ready, m.wanted: int(c.Spec.Instances),
		m.diverged: len(s.Diverged), m.broken: len(s.Broken)} {
		vec.WithLabelValues(of.Namespace, of.Name).Set(float64(value))
	}
	m.group.observe(prometheus.Labels{"namespace": c.Namespace, "cluster": c.Name}, s.Group)
}

// Published sets how far a cluster has come by a plan, once the plan is written down.
func (m *Metrics) Published(c *v1alpha1.Cluster, plan core.Plan) {
	m.epoch.WithLabelValues(c.Namespace, c.Name).Set(float64(plan.Status.Epoch))
	m.looked.WithLabelValues(c.Namespace, c.Name).SetToCurrentTime()
}

// Told counts an event that was told of a cluster.
func (m *Metrics) Told(of types.NamespacedName, e core.Event) {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	m.events.WithLabelValues(of.Namespace, of.Name, string(e.Reason), kind).Inc()
}

// Unread sets those of a cluster that cannot be read: nothing else is known of it.
func (m *Metrics) Unread(of types.NamespacedName) {
	m.forgetState(of)
	m.blocked.set(of, string(core.ReasonUnreadable))
}

// phaseDeleting is the phase, in metrics alone, of a cluster that is deleted and still there.
const phaseDeleting = "Deleting"

// Deleting sets those of a cluster that is being deleted: nobody looks after it any more.
func (m *Metrics) Deleting(of types.NamespacedName) {
	m.forgetState(of)
	m.phase.set(of, phaseDeleting)
}

// ObserveAuthority sets when a cluster's certificate authority ends. One that could not be read or
// has ended leaves what was known.
func (m *Metrics) ObserveAuthority(c *v1alpha1.Cluster, ca *pki.CA) {
	if ca != nil {
		m.authority.WithLabelValues(c.Namespace, c.Name).Set(float64(ca.Ends().Unix()))
	}
}

// Forget drops the series of a cluster that is gone.
func (m *Metrics) Forget(of types.NamespacedName) {
	m.forgetState(of)
	m.events.DeletePartialMatch(prometheus.Labels{"namespace": of.Namespace, "cluster": of.Name})
}

// forgetState drops what tells how a cluster is, and not what has been told of it.
func (m *Metrics) forgetState(of types.NamespacedName) {
	m.met.Delete(of)
	for _, g := range m.labels() {
		g.set(of)
	}
	mine := prometheus.Labels{"namespace": of.Namespace, "cluster": of.Name}
	for _, vec := range m.gauges() {
		vec.DeletePartialMatch(mine)
	}
}
