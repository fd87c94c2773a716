package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Session is a connection as SHOW PROCESSLIST names it.
type Session struct {
	ID            int64
	User, Host    string
	Command, Wait string
}

// AwaitsAck reports whether the session's commit waits for a replica.
func (s Session) AwaitsAck() bool { return strings.HasPrefix(s.Wait, "Waiting for semi-sync ACK") }

// EndsUnheard reports whether the session was killed before it had logged in. It carries out no
// statement any more, however long it stays: KILL does not close a connection of which the
// server has only just begun to make a session, which then waits for its client until
// connect_timeout is over.
func (s Session) EndsUnheard() bool { return s.User == "unauthenticated user" && s.Command == "Killed" }

// isClient reports whether a user may be behind the session: not a thread of the
// server, not replication, not the manager.
func (s Session) isClient(internal []string) bool {
	switch {
	case s.User == "system user", s.User == "event_scheduler", s.Command == "Daemon",
		strings.HasPrefix(s.Command, "Binlog Dump"):
		return false
	}
	for _, user := range internal {
		if s.User == user {
			return false
		}
	}
	return true
}

// isReplica reports whether an instance that replicates with an account is sent the binary log over the session.
func (s Session) isReplica(account string) bool {
	return s.User == account && strings.HasPrefix(s.Command, "Binlog Dump")
}

// ClientSessions lists the sessions that users may be behind; those of the
// internal accounts are left out.
func (s *Server) ClientSessions(ctx context.Context, internal ...string) ([]Session, error) {
	all, err := s.sessions(ctx)
	return slices.DeleteFunc(all, func(one Session) bool { return !one.isClient(internal) }), err
}

// ForeignReplicas lists who is sent the binary log, acknowledges what it receives, and replicates with another account
// than the instances do.
func (s *Server) ForeignReplicas(ctx context.Context, account string) (out []Session, err error) {
	const query = "SELECT DISTINCT t.PROCESSLIST_ID, t.PROCESSLIST_USER, t.PROCESSLIST_HOST " +
		"FROM performance_schema.user_variables_by_thread v JOIN performance_schema.threads t USING (THREAD_ID) " +
		"WHERE v.VARIABLE_NAME IN ('rpl_semi_sync_replica', 'rpl_semi_sync_slave') " +
		"AND t.PROCESSLIST_COMMAND LIKE 'Binlog Dump%' AND t.PROCESSLIST_USER <> ?"
	rows, err := s.db.QueryContext(ctx, query, account)
	if err != nil {
		return nil, fmt.Errorf("asking who acknowledges commits: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var one Session
		var host sql.NullString
		if err := rows.Scan(&one.ID, &one.User, &host); err != nil {
			return nil, fmt.Errorf("asking who acknowledges commits: %w", err)
		}
		one.Host = host.String
		out = append(out, one)
	}
	return out, rows.Err()
}

// sessions asks what needs no lock.
func (s *Server) sessions(ctx context.Context) ([]Session, error) {
	rows, err := s.db.QueryContext(ctx, "SHOW PROCESSLIST")
	if err != nil {
		return nil, fmt.Errorf("listing sessions: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var out []Session
	for rows.Next() {
		var one Session
		var db, state, info, host, command sql.NullString
		var seconds sql.NullInt64
		if err := rows.Scan(&one.ID, &one.User, &host, &db, &command, &seconds, &state, &info); err != nil {
			return nil, fmt.Errorf("listing sessions: %w", err)
		}
		one.Host, one.Command, one.Wait = host.String, command.String, state.String
		out = append(out, one)
	}
	return out, rows.Err()
}

// Kill closes sessions. One that is gone already is no error; one that waits for
// an acknowledgement loses its connection at once and ends with its wait.
func (s *Server) Kill(ctx context.Context, sessions []Session) error {
	for _, one := range sessions {
		err := s.exec(ctx, "KILL "+strconv.FormatInt(one.ID, 10))
		if err != nil && !isError(err, errNoSuchThread) {
			return fmt.Errorf("closing the session %d of %s: %w", one.ID, one.User, err)
		}
	}
	return nil
}

// RefuseWrites makes the server read-only for everybody. It waits for commits
// under way and for locks of others, as long as the context allows.
func (s *Server) RefuseWrites(ctx context.Context) error {
	return s.setGlobal(ctx, "super_read_only", true)
}

// RefuseClients puts the server into offline mode: it closes the sessions of all who have
// not CONNECTION_ADMIN, and lets none of them in. A server that is only read-only goes on
// to commit what was prepared by XA, whoever asks for it.
func (s *Server) RefuseClients(ctx context.Context) error {
	return s.setGlobal(ctx, "offline_mode", true)
}

// AcceptWrites makes the server writable, and lets clients in.
func (s *Server) AcceptWrites(ctx context.Context) error {
	if err := s.setGlobal(ctx, "super_read_only", false); err != nil {
		return err
	}
	if err := s.setGlobal(ctx, "read_only", false); err != nil {
		return err
	}
	return s.AcceptClients(ctx)
}
