package mysql

import (
	"context"
	"fmt"

	"cnmsql.co/internal/core"
)

// GroupMemberStats is what a server knows of the work of one member of its group.
type GroupMemberStats struct {
	UUID, Host, Version string
	State               core.MemberState
	Role                core.MemberRole
	// Known: the counters below are; a member that is not online has none.
	Known bool
	// Queued transactions wait to be checked for conflicts, ToApply to be applied.
	Queued, ToApply float64
	// Checked and Conflicts are transactions since the member joined; Rows is how
	// many rows the check for conflicts keeps in memory.
	Checked, Conflicts, Rows float64
	// Applied came from others; Proposed and RolledBack are the member's own.
	Applied, Proposed, RolledBack float64
}

// GroupStats asks for all members that this server sees; none when it is in no group.
func (s *Server) GroupStats(ctx context.Context) ([]GroupMemberStats, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT m.MEMBER_ID, m.MEMBER_HOST, m.MEMBER_VERSION, m.MEMBER_STATE,
		m.MEMBER_ROLE, s.MEMBER_ID IS NOT NULL,
		COALESCE(COUNT_TRANSACTIONS_IN_QUEUE, 0), COALESCE(COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE, 0),
		COALESCE(COUNT_TRANSACTIONS_CHECKED, 0), COALESCE(COUNT_CONFLICTS_DETECTED, 0),
		COALESCE(COUNT_TRANSACTIONS_ROWS_VALIDATING, 0), COALESCE(COUNT_TRANSACTIONS_REMOTE_APPLIED, 0),
		COALESCE(COUNT_TRANSACTIONS_LOCAL_PROPOSED, 0), COALESCE(COUNT_TRANSACTIONS_LOCAL_ROLLBACK, 0)
		FROM performance_schema.replication_group_members m
		LEFT JOIN performance_schema.replication_group_member_stats s
			ON s.MEMBER_ID = m.MEMBER_ID AND s.CHANNEL_NAME = m.CHANNEL_NAME
		WHERE m.MEMBER_ID <> '' ORDER BY m.MEMBER_HOST, m.MEMBER_ID`)
	if err != nil {
		return nil, fmt.Errorf("asking mysqld for the work of its group: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var out []GroupMemberStats
	for rows.Next() {
		var m GroupMemberStats
		if err := rows.Scan(&m.UUID, &m.Host, &m.Version, &m.State, &m.Role, &m.Known, &m.Queued, &m.ToApply,
			&m.Checked, &m.Conflicts, &m.Rows, &m.Applied, &m.Proposed, &m.RolledBack); err != nil {
			return nil, fmt.Errorf("asking mysqld for the work of its group: %w", err)
		}
		out = append(out, m)
	}
	return out, rows.Err()
}
