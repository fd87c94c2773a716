package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Status asks the server for all that is reported of it. It returns nil beside an error: a part of
// a report is none.
func (s *Server) Status(ctx context.Context) (*core.Server, error) {
	out := &core.Server{}
	var row map[string]string
	var heard receiver
	follows := []question{askReceiver(&heard)}
	followed := !s.idle.replica.Load()
	if followed {
		follows = append(follows, showReplicaStatus(&row))
	}
	err := s.askStatus(ctx, out, follows...)
	if err == nil && heard.exists && !followed {
		err = s.ask(ctx, showReplicaStatus(&row))
	}
	if err != nil {
		return nil, err
	}
	s.idle.replica.Store(!heard.exists)
	if out.Replication, err = s.replicationOf(ctx, row, heard); err != nil {
		return nil, err
	}
	if r := out.Replication; r != nil && out.Executed.Contains(r.Retrieved) {
		r.LagSeconds = 0
	}
	return out, nil
}

// MemberStatus is Status of a server that is made for a group.
func (s *Server) MemberStatus(ctx context.Context) (*core.Server, error) {
	out := &core.Server{Group: &core.GroupView{}}
	err := s.askStatus(ctx, out, groupQuestions(out.Group)...)
	if err != nil || out.Group.State == core.MemberOnline {
		return out, err
	}
	out.DataRemoved, err = s.dataRemoved(ctx)
	return out, err
}

// idle are the sides of replication of which a server said, in its last status, that it does not have them.
// What asks for more of such a side is left out of the next one: SHOW GLOBAL STATUS costs mysqld more than
// all else that it is asked, and has it walk through all its sessions. A server that has the side by then
// tells so in what is asked always, and is asked for the rest at once.
type idle struct{ source, replica atomic.Bool }

// askStatus asks for the position, and after it what else is asked. How commits wait is read
// before the position: every commit in it that came after waited so.
func (s *Server) askStatus(ctx context.Context, out *core.Server, more ...question) error {
	wasIdle := s.idle.source.Load()
	questions := append([]question{s.askSettingsAndPosition(out)}, more...)
	if !wasIdle {
		questions = append([]question{s.askSemiSyncStatus(&out.SemiSync)}, questions...)
	}
	err := s.ask(ctx, questions...)
	switch {
	case isError(err, errUnknownVariable): // the plugins are not loaded
		out.SemiSync = core.SemiSync{}
		return s.ask(ctx, append([]question{askPosition(out)}, more...)...)
	case err != nil:
		return err
	}
	s.idle.source.Store(!out.SemiSync.SourceEnabled)
	if wasIdle && out.SemiSync.SourceEnabled {
		return s.askStatus(ctx, out, more...)
	}
	return nil
}

// WaitingStatus is Status of a primary of which a session may hold the locks of accounts
// while it waits for acknowledgements. Every question that looks at a table hangs then,
// SHOW GLOBAL STATUS and every login, too; these do not. Replicas replicate with the account.
func (s *Server) WaitingStatus(ctx context.Context, account string) (*core.Server, error) {
	out := &core.Server{}
	waits := &out.SemiSync
	err := s.ask(ctx, s.askSemiSyncSettings(waits))
	if err != nil && !isError(err, errUnknownVariable) {
		return nil, err
	}
	sessions, err := s.sessions(ctx)
	if err != nil {
		return nil, err
	}
	countWaiting(sessions, account, waits)
	return out, s.ask(ctx, askPosition(out))
}

// countWaiting counts who waits for an acknowledgement and who may send one: the replicas, which replicate
// with the account. Whoever else reads the binary log is none, and acknowledges nothing.
func countWaiting(sessions []Session, account string, into *core.SemiSync) {
	for _, one := range sessions {
		switch {
		case one.AwaitsAck():
			into.WaitSessions++
		case one.isReplica(account):
			into.Clients++
		}
	}
	into.SourceActive = into.WaitSessions > 0
}

// position is read in one statement, so that what is executed and what is purged fit together;
// and from left to right: what is being committed is owned until it is executed.
const position = "@@global.server_uuid, @@global.super_read_only, @@global.read_only, @@global.offline_mode, " +
	"@@global.gtid_owned, @@global.gtid_executed, @@global.gtid_purged"

func askPosition(out *core.Server) question {
	return question{"asking mysqld for its position", "SELECT " + position, func(rows *sql.Rows) error {
		return readPosition(rows, out)
	}}
}

// askSettingsAndPosition asks from left to right how commits wait, and then for the position.
func (s *Server) askSettingsAndPosition(out *core.Server) question {
	query := "SELECT " + s.semiSyncSettings() + ", " + position
	return question{"asking mysqld for its position", query, func(rows *sql.Rows) error {
		var timeout int64
		var waits bool
		c := &out.SemiSync
		err := readPosition(rows, out, &c.SourceEnabled, &c.Acks, &timeout, &waits, &c.ReplicaEnabled)
		settle(c, timeout, waits)
		return err
	}}
}

// readPosition reads what stands before it, too.
func readPosition(rows *sql.Rows, out *core.Server, before ...any) (err error) {
	var owned, executed, purged string
	into := append(before, &out.UUID, &out.SuperReadOnly, &out.ReadOnly, &out.Offline, &owned, &executed, &purged)
	if err := readOne(rows, into...); err != nil {
		return err
	}
	if out.Executed, err = gtid.Parse(executed); err != nil {
		return fmt.Errorf("reading gtid_executed: %w", err)
	}
	if out.Purged, err = gtid.Parse(purged); err != nil {
		return fmt.Errorf("reading gtid_purged: %w", err)
	}
	if !out.SuperReadOnly { // else it is what the applier is about to commit
		out.Owned, err = parseOwned(owned)
	}
	return err
}

// Executed asks for gtid_executed.
func (s *Server) Executed(ctx context.Context) (gtid.Set, error) {
	var text string
	if err := s.db.QueryRowContext(ctx, "SELECT @@global.gtid_executed").Scan(&text); err != nil {
		return gtid.Set{}, fmt.Errorf("asking mysqld for gtid_executed: %w", err)
	}
	return gtid.Parse(text)
}

func showReplicaStatus(row *map[string]string) question {
	read := func(rows *sql.Rows) (err error) {
		*row, err = readMap(rows)
		return err
	}
	return question{"asking mysqld for its replication status", "SHOW REPLICA STATUS" + ourChannel, read}
}

// Replication asks for the state of the replication channel; nil if there is none.
func (s *Server) Replication(ctx context.Context) (*core.Replication, error) {
	var row map[string]string
	var heard receiver
	if err := s.ask(ctx, askReceiver(&heard), showReplicaStatus(&row)); err != nil {
		return nil, err
	}
	return s.replicationOf(ctx, row, heard)
}

func (s *Server) replicationOf(
	ctx context.Context, row map[string]string, receiver receiver,
) (*core.Replication, error) {
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
	sqlErrno, sqlError, err := s.applierError(ctx, row)
	if err != nil {
		return nil, err
	}
	receives := row["Replica_IO_Running"] == "Yes"
	noSpace := row["Replica_IO_State"] == waitsForSpace || isTorn(row)
	return &core.Replication{
		Received:     fmt.Sprintf("%s:%s:%d", row["Source_Log_File"], row["Read_Source_Log_Pos"], receiver.heartbeats),
		SourceHost:   row["Source_Host"],
		SourceUUID:   row["Source_UUID"],
		IORunning:    receives || receiver.connected,
		Silent:       receiver.silent && receives && !noSpace,
		NoSpace:      noSpace,
		IOConnecting: row["Replica_IO_Running"] == "Connecting" && !receiver.connected,
		SQLRunning:   row["Replica_SQL_Running"] == "Yes",
		IOError:      withoutAttempt(row["Last_IO_Error"]),
		IOErrno:      errno,
		Refused:      refusal(errno),
		SQLError:     sqlError,
		CopyHinders:  sqlErrno == errCopyIsTaken,
		Retrieved:    retrieved,
		LagSeconds:   max(lag, receiver.lag),
		DelaySeconds: delay,
	}, nil
}

// applierError is what stopped the applier. Its coordinator says only that one of its
// workers was stopped, and where to look for the reason: it is looked for here. Many read it who may not
// read the data.
func (s *Server) applierError(ctx context.Context, row map[string]string) (errno int, text string, err error) {
	if row["Last_SQL_Error"] == "" {
		return 0, "", nil
	}
	err = s.db.QueryRowContext(ctx, `SELECT LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE
		FROM performance_schema.replication_applier_status_by_worker
		WHERE CHANNEL_NAME = '' AND LAST_ERROR_NUMBER <> 0 ORDER BY LAST_ERROR_TIMESTAMP LIMIT 1`).Scan(&errno, &text)
	if errors.Is(err, sql.ErrNoRows) || err == nil && text == "" {
		errno, _ = strconv.Atoi(row["Last_SQL_Errno"])
		return errno, unquotedQuery(row["Last_SQL_Error"]), nil
	}
	if err != nil {
		return 0, "", fmt.Errorf("asking what stopped the applier: %w", err)
	}
	return errno, unquotedQuery(text), nil
}

// receiver is how the receiving of a channel stands. It is asked for before SHOW REPLICA STATUS,
// which reads first what was received, and only then whether the receiver is connected. What is
// received in between, before the connection breaks, would be in neither: such a replica would be
// believed to receive nothing more, and to hold less than it does.
type receiver struct {
	// exists: the server is told whom to follow.
	exists    bool
	connected bool
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

func askReceiver(out *receiver) question {
	return question{"asking mysqld when its receiver heard something last", `
			SELECT SERVICE_STATE = 'ON', COUNT_RECEIVED_HEARTBEATS,
			IF(LAST_HEARTBEAT_TIMESTAMP > 0 AND QUEUEING_TRANSACTION = '', TIMESTAMPDIFF(MICROSECOND,
				GREATEST(LAST_HEARTBEAT_TIMESTAMP, LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP),
				NOW(6)) / 1000000, NULL),
			IF(LAST_HEARTBEAT_TIMESTAMP < LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP + INTERVAL 1 SECOND,
				TIMESTAMPDIFF(SECOND, LAST_QUEUED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP,
				LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP), NULL)
		FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = ''`,
		func(rows *sql.Rows) error {
			var silence, lag sql.NullFloat64
			if err := readOne(rows, &out.connected, &out.heartbeats, &silence, &lag); err != nil {
				if errors.Is(err, sql.ErrNoRows) {
					return nil
				}
				return err
			}
			out.exists = true
			out.silent = silence.Valid && silence.Float64 >= core.SilentAfter.Seconds()
			out.lag = max(lag.Float64, 0) // the source's clock may be ahead
			return nil
		}}
}

// SemiSync asks for both sides of semi-synchronous replication.
func (s *Server) SemiSync(ctx context.Context) (out core.SemiSync, err error) {
	err = s.ask(ctx, s.askSemiSyncSettings(&out), s.askSemiSyncStatus(&out))
	if isError(err, errUnknownVariable) {
		return core.SemiSync{}, nil // the plugins are not loaded
	}
	return out, err
}

func (s *Server) askSemiSyncStatus(out *core.SemiSync) question {
	source := s.version().names().semiSyncSource
	const query = "SHOW GLOBAL STATUS LIKE 'Rpl\\_semi\\_sync%'"
	return question{"asking mysqld for its semi-sync status", query, func(rows *sql.Rows) error {
		status, err := readPairs(rows)
		get := func(suffix string) string {
			for name, value := range status {
				if strings.EqualFold(name, source+suffix) {
					return value
				}
			}
			return ""
		}
		out.SourceActive = get("_status") == "ON"
		out.Clients, _ = strconv.Atoi(get("_clients"))
		out.WaitSessions, _ = strconv.Atoi(get("_wait_sessions"))
		return err
	}}
}

func (s *Server) askSemiSyncSettings(out *core.SemiSync) question {
	query := "SELECT " + s.semiSyncSettings()
	return question{"asking mysqld for its semi-sync settings", query, func(rows *sql.Rows) error {
		var timeout int64
		var waits bool
		err := readOne(rows, &out.SourceEnabled, &out.Acks, &timeout, &waits, &out.ReplicaEnabled)
		settle(out, timeout, waits)
		return err
	}}
}

func (s *Server) semiSyncSettings() string {
	n := s.version().names()
	return fmt.Sprintf("@@global.%s_enabled, @@global.%s, @@global.%s_timeout, @@global.%s, @@global.%s_enabled",
		n.semiSyncSource, n.semiSyncCount, n.semiSyncSource, n.semiSyncAlone, n.semiSyncReplica)
}

// settle finishes what was read of semi-synchronous replication. What a source is set to counts
// while it is one: otherwise it waits for no acknowledgements, and blocks nothing. The timeout is
// in milliseconds; waits tells whether it counts also while too few replicas are attached. Where it does not,
// no commit waits then.
func settle(c *core.SemiSync, timeout int64, waits bool) {
	if !c.SourceEnabled {
		c.Acks = 0
	}
	c.Blocks = c.SourceEnabled && timeout >= Forever.Milliseconds() && waits
}

// Pairs are SHOW GLOBAL STATUS and SHOW GLOBAL VARIABLES, for metrics, as the server writes them.
func (s *Server) Pairs(ctx context.Context) (status, variables map[string]string, err error) {
	read := func(into *map[string]string) func(*sql.Rows) error {
		return func(rows *sql.Rows) (err error) {
			*into, err = readPairs(rows)
			return err
		}
	}
	err = s.ask(ctx, question{"asking mysqld for its status", "SHOW GLOBAL STATUS", read(&status)},
		question{"asking mysqld for its variables", "SHOW GLOBAL VARIABLES", read(&variables)})
	return status, variables, err
}
