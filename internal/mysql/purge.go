package mysql

import (
	"context"
	"fmt"
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
