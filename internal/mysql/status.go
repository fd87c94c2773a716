package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Status asks the server for all that is reported of it.
func (s *Server) Status(ctx context.Context) (*core.Server, error) {
	out, err := s.position(ctx)
	if err != nil {
		return nil, err
	}
	out.Replication, err = s.Replication(ctx)
	if err != nil {
		return nil, err
	}
	if r := out.Replication; r != nil && out.Executed.Contains(r.Retrieved) {
		r.LagSeconds = 0
	}
	return out, nil
}

// MemberStatus is Status of a server that is made for a group.
func (s *Server) MemberStatus(ctx context.Context) (*core.Server, error) {
	out, err := s.position(ctx)
	if err != nil {
		return nil, err
	}
	if out.Group, err = s.GroupView(ctx); err != nil || out.Group.State == core.MemberOnline {
		return out, err
	}
	out.DataRemoved, err = s.dataRemoved(ctx)
	return out, err
}

func (s *Server) position(ctx context.Context) (*core.Server, error) {
	// How commits wait is read before the position: every commit in it that came
	// after waited so.
	waits, err := s.SemiSync(ctx)
	if err != nil {
		return nil, err
	}
	return s.positionOf(ctx, waits)
}

// WaitingStatus is Status of a primary of which a session may hold the locks of accounts
// while it waits for acknowledgements. Every question that looks at a table hangs then,
// SHOW GLOBAL STATUS and every login, too; these do not.
func (s *Server) WaitingStatus(ctx context.Context) (*core.Server, error) {
	waits, err := s.semiSyncSettings(ctx)
	if err != nil {
		return nil, err
	}
	sessions, err := s.sessions(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range sessions {
		switch {
		case one.AwaitsAck():
			waits.WaitSessions++
		case strings.HasPrefix(one.Command, "Binlog Dump"):
			waits.Clients++
		}
	}
	waits.SourceActive = waits.WaitSessions > 0
	return s.positionOf(ctx, waits)
}

func (s *Server) positionOf(ctx context.Context, waits core.SemiSync) (*core.Server, error) {
	out := &core.Server{SemiSync: waits}
	var owned, executed, purged string
	// One statement, so that what is executed and what is purged fit together; and from left
	// to right: what is being committed is owned until it is executed.
	err := s.db.QueryRowContext(ctx,
		"SELECT @@global.server_uuid, @@global.super_read_only, @@global.offline_mode, @@global.gtid_owned, @@global.gtid_executed, @@global.gtid_purged").
		Scan(&out.UUID, &out.SuperReadOnly, &out.Offline, &owned, &executed, &purged)
	if err != nil {
		return nil, fmt.Errorf("asking mysqld for its position: %w", err)
	}
	if out.Executed, err = gtid.Parse(executed); err != nil {
		return nil, fmt.Errorf("reading gtid_executed: %w", err)
	}
	if out.Purged, err = gtid.Parse(purged); err != nil {
		return nil, fmt.Errorf("reading gtid_purged: %w", err)
	}
	if !out.SuperReadOnly { // else it is what the applier is about to commit
		if out.Owned, err = parseOwned(owned); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Executed asks for gtid_executed.
func (s *Server) Executed(ctx context.Context) (gtid.Set, error) {
	var text string
	if err := s.db.QueryRowContext(ctx, "SELECT @@global.gtid_executed").Scan(&text); err != nil {
		return gtid.Set{}, fmt.Errorf("asking mysqld for gtid_executed: %w", err)
	}
	return gtid.Parse(text)
}

// Replication asks for the state of the replication channel; nil if there is none.
func (s *Server) Replication(ctx context.Context) (*core.Replication, error) {
	row, err := s.rowMap(ctx, "SHOW REPLICA STATUS")
	if err != nil {
		return nil, fmt.Errorf("asking mysqld for its replication status: %w", err)
	}
	if row["Source_Host"] == "" {
		return nil, nil
	}
	retrieved, err := gtid.Parse(row["Retrieved_Gtid_Set"])
	if err != nil {
		return nil, fmt.Errorf("reading Retrieved_Gtid_Set: %w", err)
	}
	errno, _ := strconv.Atoi(row["Last_IO_Errno"])
	delay, _ := strconv.Atoi(row["SQL_Delay"])
	lag, _ := strconv.ParseFloat(row["Seconds_Behind_Source"], 64) // NULL while a thread is stopped
	receiver, err := s.receiver(ctx)
	if err != nil {
		return nil, err
	}
	sqlError, err := s.applierError(ctx, row["Last_SQL_Error"])
	if err != nil {
		return nil, err
	}
	return &core.Replication{
		Received:     fmt.Sprintf("%s:%s:%d", row["Source_Log_File"], row["Read_Source_Log_Pos"], receiver.heartbeats),
		SourceHost:   row["Source_Host"],
		SourceUUID:   row["Source_UUID"],
		IORunning:    row["Replica_IO_Running"] == "Yes",
		Silent:       receiver.silent && row["Replica_IO_Running"] == "Yes",
		IOConnecting: row["Replica_IO_Running"] == "Connecting",
		SQLRunning:   row["Replica_SQL_Running"] == "Yes",
		IOError:      withoutAttempt(row["Last_IO_Error"]),
		IOErrno:      errno,
		Refused:      refusal(errno),
		SQLError:     sqlError,
		Retrieved:    retrieved,
		LagSeconds:   max(lag, receiver.lag),
		DelaySeconds: delay,
	}, nil
}

// applierError is what stopped the applier. Its coordinator says only that one of its
// workers was stopped, and where to look for the reason: it is looked for here.
func (s *Server) applierError(ctx context.Context, said string) (string, error) {
	if said == "" {
		return "", nil
	}
	var worker string
	err := s.db.QueryRowContext(ctx, `SELECT LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker
		WHERE CHANNEL_NAME = '' AND LAST_ERROR_NUMBER <> 0 ORDER BY LAST_ERROR_TIMESTAMP LIMIT 1`).Scan(&worker)
	if errors.Is(err, sql.ErrNoRows) || err == nil && worker == "" {
		return said, nil
	}
	if err != nil {
		return "", fmt.Errorf("asking what stopped the applier: %w", err)
	}
	return worker, nil
}

// receiver is how the receiving of a channel stands.
type receiver struct {
	// silent: nothing was heard for core.SilentAfter. It is not known of a connection that
	// has not had a heartbeat, for none is sent while there is always something else to
	// send; nor while a transaction is being received, however long it takes.
	silent bool
	// heartbeats are all that were received.
	heartbeats uint64
	// lag is how many seconds after its commit the last transaction was received; 0
	// once nothing but heartbeats came for a second (a single one may come before what
	// is still to be sent). Seconds_Behind_Source is 0 whenever all that was received is
	// applied, however little that may be.
	lag float64
}

func (s *Server) receiver(ctx context.Context) (receiver, error) {
	var silence, lag sql.NullFloat64
	var heartbeats uint64
	err := s.db.QueryRowContext(ctx, `SELECT COUNT_RECEIVED_HEARTBEATS,
			IF(LAST_HEARTBEAT_TIMESTAMP > 0 AND QUEUEING_TRANSACTION = '', TIMESTAMPDIFF(MICROSECOND,
				GREATEST(LAST_HEARTBEAT_TIMESTAMP, LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP), NOW(6)) / 1000000, NULL),
			IF(LAST_HEARTBEAT_TIMESTAMP < LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP + INTERVAL 1 SECOND, TIMESTAMPDIFF(SECOND,
				LAST_QUEUED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP, LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP), NULL)
		FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = ''`).Scan(&heartbeats, &silence, &lag)
	if errors.Is(err, sql.ErrNoRows) {
		return receiver{}, nil
	}
	if err != nil {
		return receiver{}, fmt.Errorf("asking mysqld when its receiver heard something last: %w", err)
	}
	return receiver{
		heartbeats: heartbeats,
		silent:     silence.Valid && silence.Float64 >= core.SilentAfter.Seconds(),
		lag:        max(lag.Float64, 0), // the source's clock may be ahead
	}, nil
}

// SemiSync asks for both sides of semi-synchronous replication.
func (s *Server) SemiSync(ctx context.Context) (core.SemiSync, error) {
	n := s.version().names()
	out, err := s.semiSyncSettings(ctx)
	if err != nil {
		return out, err
	}
	status, err := s.pairs(ctx, "SHOW GLOBAL STATUS LIKE 'Rpl\\_semi\\_sync%'")
	if err != nil {
		return out, fmt.Errorf("asking mysqld for its semi-sync status: %w", err)
	}
	get := func(suffix string) string {
		for name, value := range status {
			if strings.EqualFold(name, n.semiSyncSource+suffix) {
				return value
			}
		}
		return ""
	}
	out.SourceActive = get("_status") == "ON"
	out.Clients, _ = strconv.Atoi(get("_clients"))
	out.WaitSessions, _ = strconv.Atoi(get("_wait_sessions"))
	return out, nil
}

func (s *Server) semiSyncSettings(ctx context.Context) (core.SemiSync, error) {
	n := s.version().names()
	var out core.SemiSync
	var timeout int64
	err := s.db.QueryRowContext(ctx, fmt.Sprintf("SELECT @@global.%s_enabled, @@global.%s, @@global.%s_timeout, @@global.%s_enabled",
		n.semiSyncSource, n.semiSyncCount, n.semiSyncSource, n.semiSyncReplica)).
		Scan(&out.SourceEnabled, &out.Acks, &timeout, &out.ReplicaEnabled)
	if isError(err, errUnknownVariable) {
		return out, nil // the plugins are not loaded
	}
	if err != nil {
		return out, fmt.Errorf("asking mysqld for its semi-sync settings: %w", err)
	}
	if !out.SourceEnabled {
		out.Acks = 0
	}
	out.Blocks = out.SourceEnabled && timeout >= Forever.Milliseconds()
	return out, nil
}

// Counters are a handful of SHOW GLOBAL STATUS, for metrics.
func (s *Server) Counters(ctx context.Context) (map[string]float64, error) {
	status, err := s.pairs(ctx, `SHOW GLOBAL STATUS WHERE Variable_name IN ('Uptime', 'Questions', 'Queries',
		'Connections', 'Aborted_connects', 'Threads_connected', 'Threads_running', 'Slow_queries', 'Com_commit',
		'Innodb_buffer_pool_bytes_data', 'Innodb_row_lock_waits', 'Bytes_received', 'Bytes_sent')`)
	if err != nil {
		return nil, fmt.Errorf("asking mysqld for its counters: %w", err)
	}
	out := map[string]float64{}
	for name, text := range status {
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			out[strings.ToLower(name)] = v
		}
	}
	return out, nil
}
