package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Source is where a replica replicates from.
type Source struct {
	Host string
	Port int
	// Account is whom to log in as; without a name whom a channel that exists logs in as already.
	Account                   Account
	CAFile, CertFile, KeyFile string
	// AnyName takes a certificate that names another host, when the authority has signed it.
	AnyName bool
	// Refuses tells why a server that has received these transactions, and receives nothing
	// more, must not be pointed at the source; nil when it may. Without one, any may.
	Refuses func(retrieved gtid.Set) error
}

// BecomeReplicaOf points the replication channel at a source and starts it. The
// applier of a channel that exists goes on meanwhile, and relay logs stay: stopped
// in the middle of a transaction of which the former source has sent a part, it
// would wait a minute for the rest. The new source sends such a transaction again.
// Where there is no channel yet, it was not made by this package, or its relay logs are torn,
// they are dropped: src.Refuses makes sure that the server has executed, or the source
// holds, all that is in them. Where they stay they are applied: that nothing else is in them
// keeps this server from diverging. When it refuses, nothing is received any more.
func (s *Server) BecomeReplicaOf(ctx context.Context, src Source) error {
	more, err := s.prepareToFollow(ctx, src)
	if err != nil {
		return fmt.Errorf("before following %s: %w", src.Host, err)
	}
	values := []any{src.Host, src.Port, core.ConnectRetry.Seconds(), core.HeartbeatPeriod.Seconds(),
		src.CAFile, src.CertFile, src.KeyFile, !src.AnyName}
	if src.Account.User != "" {
		more += ", SOURCE_USER=?, SOURCE_PASSWORD=?"
		values = append(values, src.Account.User, src.Account.Password)
	}
	statement := `CHANGE REPLICATION SOURCE TO SOURCE_HOST=?, SOURCE_PORT=?,
		SOURCE_CONNECT_RETRY=?, SOURCE_RETRY_COUNT=100000000, SOURCE_HEARTBEAT_PERIOD=?,
		SOURCE_SSL=1, SOURCE_SSL_CA=?, SOURCE_SSL_CERT=?, SOURCE_SSL_KEY=?, SOURCE_SSL_VERIFY_SERVER_CERT=?` +
		more + ourChannel
	statement = s.version().changeSource(statement)
	// From here on it is not given up: a START that is on its way when its
	// connection is closed could undo a later STOP.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), core.ReceiveStartLimit)
	defer cancel()
	if err := s.exec(ctx, statement, values...); err != nil {
		return fmt.Errorf("pointing replication at %s: %w", src.Host, unquoted(err))
	}
	if err := s.exec(ctx, "START REPLICA"+ourChannel); err != nil {
		return fmt.Errorf("starting replication from %s: %w", src.Host, err)
	}
	return nil
}

// prepareToFollow stops what must be stopped, and tells what more must be changed than the source.
func (s *Server) prepareToFollow(ctx context.Context, src Source) (more string, err error) {
	if err := s.StopReceiving(ctx); err != nil {
		return "", err
	}
	var row map[string]string
	if err := s.ask(ctx, showReplicaStatus(&row)); err != nil {
		return "", err
	}
	retrieved, err := gtid.Parse(row["Retrieved_Gtid_Set"])
	if err != nil {
		return "", fmt.Errorf("reading Retrieved_Gtid_Set: %w", err)
	}
	if src.Refuses != nil {
		if err := src.Refuses(retrieved); err != nil {
			return "", err
		}
	}
	if src.Account.User == "" && row["Source_User"] == "" {
		return "", errors.New("no account to log in as is given, and the replication channel has none")
	}
	if row["Auto_Position"] == "1" && (row["SQL_Delay"] == "" || row["SQL_Delay"] == "0") && !isTorn(row) {
		return "", nil
	}
	// These two cannot be changed, and relay logs not dropped, while the applier runs.
	return ", SOURCE_AUTO_POSITION=1, SOURCE_DELAY=0", s.StopReplication(ctx)
}

// StartReceiving starts the thread that receives from the source. It is not given
// up half way, or it could undo a later StopReceiving.
func (s *Server) StartReceiving(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), core.ReceiveStartLimit)
	defer cancel()
	const doing = "starting to receive from the source"
	if err := s.dropTorn(ctx); err != nil {
		return wrap(doing, err)
	}
	return wrap(doing, s.exec(ctx, "START REPLICA IO_THREAD"+ourChannel))
}

// StopReceiving stops the thread that receives from the source, and with it the
// acknowledgements this server gives. It returns when the thread has ended. One that waits for
// space on a full volume would not end before it has that: it is ended, which it notices
// within a second. What it was writing is cut off, and was not received.
func (s *Server) StopReceiving(ctx context.Context) error {
	const doing = "stopping to receive from the source"
	stopped := make(chan error, 1)
	go func() { stopped <- s.exec(ctx, "STOP REPLICA IO_THREAD"+ourChannel) }()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-stopped:
			if isError(err, errReplicaNotSetUp) {
				return nil
			}
			return wrap(doing, err)
		case <-tick.C:
			if err := s.killWithoutSpace(ctx); err != nil {
				return wrap(doing, errors.Join(err, <-stopped))
			}
		}
	}
}

// isTorn reports whether the relay logs end within an event, for the receiver was ended while it
// wrote that. The applier waits before it, and stops for good once another relay log follows.
func isTorn(row map[string]string) bool { return row["Last_IO_Errno"] == errRelayLogWrite }

// dropTorn drops torn relay logs as soon as all that they hold as a whole is applied. What was
// torn is received again.
func (s *Server) dropTorn(ctx context.Context) error {
	var row map[string]string
	if err := s.ask(ctx, showReplicaStatus(&row)); err != nil || !isTorn(row) {
		return err
	}
	retrieved, err := gtid.Parse(row["Retrieved_Gtid_Set"])
	if err != nil {
		return fmt.Errorf("reading Retrieved_Gtid_Set: %w", err)
	}
	applied, err := s.WaitForGTID(ctx, retrieved, time.Second)
	if err == nil && !applied {
		err = errors.New("its relay logs end within an event: they are dropped when what they hold is applied")
	}
	if err != nil {
		return err
	}
	if err := s.StopReplication(ctx); err != nil {
		return err
	}
	statement := "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION=1" // which drops them, where nothing runs
	if err := s.exec(ctx, s.version().changeSource(statement)+ourChannel); err != nil {
		return fmt.Errorf("dropping relay logs that end within an event: %w", err)
	}
	return s.StartApplying(ctx)
}

// waitsForSpace is the state of a thread that waits, for ever, until its volume is not full
// any more.
const waitsForSpace = "Waiting for disk space"

// killWithoutSpace ends the receiver if it waits for space.
func (s *Server) killWithoutSpace(ctx context.Context) error {
	const doing = "ending the receiver, which waits for space"
	var thread int64
	err := s.db.QueryRowContext(ctx, `SELECT t.PROCESSLIST_ID
		FROM performance_schema.replication_connection_status r
		JOIN performance_schema.threads t ON t.THREAD_ID = r.THREAD_ID
		WHERE r.CHANNEL_NAME = '' AND t.PROCESSLIST_STATE = ?`, waitsForSpace).Scan(&thread)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = s.exec(ctx, "KILL ?", thread)
	}
	if isError(err, errNoSuchThread) {
		return nil
	}
	return wrap(doing, err)
}

// StartApplying starts the threads that apply what was received.
func (s *Server) StartApplying(ctx context.Context) error {
	return wrap("starting to apply", s.exec(ctx, "START REPLICA SQL_THREAD"+ourChannel))
}

// StopReplication stops receiving and applying on the cluster's channel.
func (s *Server) StopReplication(ctx context.Context) error {
	if err := s.StopReceiving(ctx); err != nil {
		return err
	}
	if err := s.giveUpPart(ctx, ""); err != nil {
		return err
	}
	err := s.exec(ctx, "STOP REPLICA"+ourChannel)
	if isError(err, errReplicaNotSetUp) {
		return nil
	}
	return wrap("stopping replication", err)
}

// giveUpPart ends the applier of a channel at once when it is in the middle of a transaction of
// which only a part was received: asked to stop, it would wait a minute for the rest.
// What it has applied of it is rolled back. Receiving has been stopped.
func (s *Server) giveUpPart(ctx context.Context, channel string) error {
	const doing = "ending the applier, which waits for the rest of a transaction"
	thread, err := s.applierOfPart(ctx, channel)
	if err != nil || thread == 0 {
		return err
	}
	if err := s.exec(ctx, "KILL ?", thread); err != nil && !isError(err, errNoSuchThread) {
		return wrap(doing, err)
	}
	return wrap(doing, until(ctx, 5*time.Millisecond, func() (bool, error) {
		thread, err := s.applierOfPart(ctx, channel)
		return thread == 0, err
	}))
}

// applierOfPart is the connection of the coordinator of a channel's applier if that processes a
// transaction that was not received as a whole; 0 if not.
func (s *Server) applierOfPart(ctx context.Context, channel string) (int64, error) {
	var thread int64
	var processing, received string
	err := s.db.QueryRowContext(ctx, `SELECT t.PROCESSLIST_ID, c.PROCESSING_TRANSACTION, r.RECEIVED_TRANSACTION_SET
		FROM performance_schema.replication_applier_status_by_coordinator c
		JOIN performance_schema.replication_connection_status r ON r.CHANNEL_NAME = c.CHANNEL_NAME
		JOIN performance_schema.threads t ON t.THREAD_ID = c.THREAD_ID
		WHERE c.CHANNEL_NAME = ? AND c.SERVICE_STATE = 'ON'`, channel).Scan(&thread, &processing, &received)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("asking what the applier is doing: %w", err)
	}
	part, err := gtid.Parse(processing)
	if err != nil { // ANONYMOUS, or nothing that has a name yet
		return 0, nil
	}
	whole, err := gtid.Parse(received)
	if err != nil {
		return 0, fmt.Errorf("reading what was received: %w", err)
	}
	if part.IsEmpty() || whole.Contains(part) {
		return 0, nil
	}
	return thread, nil
}

// ForgetSource stops replication and removes the cluster's channel. Those of others stay.
func (s *Server) ForgetSource(ctx context.Context) error {
	if err := s.StopReplication(ctx); err != nil {
		return err
	}
	return wrap("removing the replication channel", s.exec(ctx, "RESET REPLICA ALL"+ourChannel))
}

// BeginBinaryLog closes the binary log's last file and begins another. Whoever connects
// and has all that was written before is sent the new file only; else the server reads
// through the old one, up to max_binlog_size, to find where to begin.
func (s *Server) BeginBinaryLog(ctx context.Context) error {
	return wrap("beginning a new file of the binary log", s.exec(ctx, "FLUSH NO_WRITE_TO_BINLOG BINARY LOGS"))
}

// WaitForGTID waits until the server has executed a set, at most so long, and
// tells whether it has.
func (s *Server) WaitForGTID(ctx context.Context, set gtid.Set, atMost time.Duration) (bool, error) {
	if set.IsEmpty() {
		return true, nil
	}
	var timedOut int
	err := s.db.QueryRowContext(ctx, "SELECT WAIT_FOR_EXECUTED_GTID_SET(?, ?)", set.String(),
		atMost.Seconds()).Scan(&timedOut)
	if err != nil {
		return false, fmt.Errorf("waiting until %s is executed: %w", set.Abbreviate(4), err)
	}
	return timedOut == 0, nil
}
