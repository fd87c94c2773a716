package instance

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/mysql"
)

// group asks a member of a group for the group as it sees it. These are no verdict: a
// member that is cut off sees another group than the majority does.
func (s *scraper) group(ctx context.Context, g gauges, view *core.GroupView) {
	g.flag("cnmsql_group_online", "Whether this member is online in its group.", view.State == core.MemberOnline)
	g.flag("cnmsql_group_has_majority", "Whether this member is online and reaches a majority of the group.",
		view.IsQuorate())
	all, err := s.asks().GroupStats(ctx)
	if err != nil {
		s.log.Debug("cannot read metrics of the group", "error", err)
		return
	}
	for _, m := range all {
		g.member(m)
	}
}

// perMember are the metrics of each member; their names follow the columns of
// performance_schema.replication_group_member_stats.
var perMember = []struct {
	name, help string
	kind       prometheus.ValueType
	value      func(mysql.GroupMemberStats) float64
}{
	{"transactions_in_queue", "Transactions that wait to be checked for conflicts.", prometheus.GaugeValue,
		func(m mysql.GroupMemberStats) float64 { return m.Queued }},
	{"transactions_remote_in_applier_queue", "Transactions of others that wait to be applied.", prometheus.GaugeValue,
		func(m mysql.GroupMemberStats) float64 { return m.ToApply }},
	{"transactions_rows_validating", "Rows kept to find conflicts by.", prometheus.GaugeValue,
		func(m mysql.GroupMemberStats) float64 { return m.Rows }},
	{"transactions_checked_total", "Transactions that were checked for conflicts.", prometheus.CounterValue,
		func(m mysql.GroupMemberStats) float64 { return m.Checked }},
	{"conflicts_detected_total", "Transactions that failed the check for conflicts.", prometheus.CounterValue,
		func(m mysql.GroupMemberStats) float64 { return m.Conflicts }},
	{"transactions_remote_applied_total", "Transactions of others that were applied.", prometheus.CounterValue,
		func(m mysql.GroupMemberStats) float64 { return m.Applied }},
	{"transactions_local_proposed_total", "Transactions of the member itself that were sent to the group.",
		prometheus.CounterValue, func(m mysql.GroupMemberStats) float64 { return m.Proposed }},
	{"transactions_local_rollback_total", "Transactions of the member itself that were rolled back after they were " +
		"sent to the group.", prometheus.CounterValue, func(m mysql.GroupMemberStats) float64 { return m.RolledBack }},
}

// member is one line of what is seen. The UUID tells members apart whose hosts do not.
func (g gauges) member(m mysql.GroupMemberStats) {
	name := core.InstanceIn(m.Host)
	g.out <- prometheus.MustNewConstMetric(prometheus.NewDesc("cnmsql_group_member_info", "A member as this one sees "+
		"it, in labels.",
		[]string{"member", "member_id", "state", "role", "version"}, nil), prometheus.GaugeValue, 1, name, m.UUID,
		string(m.State), string(m.Role), m.Version)
	if !m.Known {
		return
	}
	for _, of := range perMember {
		desc := prometheus.NewDesc("cnmsql_group_member_"+of.name, of.help, []string{"member", "member_id"}, nil)
		g.out <- prometheus.MustNewConstMetric(desc, of.kind, of.value(m), name, m.UUID)
	}
}
