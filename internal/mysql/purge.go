package mysql

import (
	"context"
	"fmt"

	"cnmsql.co/internal/gtid"
)

// HoldLogs has the server keep binary logs that have expired, or remove them by itself again.
// Servers before 8.0.29 always do.
func (s *Server) HoldLogs(ctx context.Context, hold bool) error {
	if !s.version().has(purgesOnRequest) {
		return nil
	}
	return s.setGlobal(ctx, "binlog_expire_logs_auto_purge", !hold)
}

// LogsExpireAfter asks after how many seconds binary logs may go; 0 is never.
func (s *Server) LogsExpireAfter(ctx context.Context) (seconds int64, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT @@global.binlog_expire_logs_seconds").Scan(&seconds)
	return seconds, wrap("asking when binary logs expire", err)
}

// PurgeLogs removes the binary logs before one. A log that is being read stays, with those
// behind it.
func (s *Server) PurgeLogs(ctx context.Context, to string) error {
	if err := s.exec(ctx, "PURGE BINARY LOGS TO ?", to); err != nil {
		return fmt.Errorf("purging binary logs before %s: %w", to, err)
	}
	return nil
}

// Readers counts the replicas that are sent the binary logs now, by the account with which instances replicate:
// whoever else reads them is none. The server ends the earlier session of a replica that comes again.
func (s *Server) Readers(ctx context.Context, account string) (n int, err error) {
	all, err := s.sessions(ctx)
	for _, one := range all {
		if one.isReplica(account) {
			n++
		}
	}
	return n, err
}

// CommittedByAll asks what all members of the present view have executed. The members tell each other once a minute, so
// that it is older than that at most; it is empty before they have done so, and outside of a group.
func (s *Server) CommittedByAll(ctx context.Context) (gtid.Set, error) {
	var text string
	row := s.db.QueryRowContext(ctx, `SELECT COALESCE(MAX(TRANSACTIONS_COMMITTED_ALL_MEMBERS), '')
		FROM performance_schema.replication_group_member_stats
		WHERE MEMBER_ID = @@global.server_uuid AND CHANNEL_NAME = 'group_replication_applier'`)
	if err := row.Scan(&text); err != nil {
		return gtid.Set{}, wrap("asking what all members have executed", err)
	}
	set, err := gtid.Parse(text)
	return set, wrap("reading what all members have executed", err)
}
