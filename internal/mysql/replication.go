package mysql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cnmsql.co/internal/gtid"
)

// Source is where a replica replicates from.
type Source struct {
	Host                      string
	Port                      int
	Account                   Account
	CAFile, CertFile, KeyFile string
}

// BecomeReplicaOf points the replication channel at a source and starts it. The
// relay logs are dropped: the caller has made sure that the source holds, or the
// server has executed, all that is in them.
func (s *Server) BecomeReplicaOf(ctx context.Context, src Source) error {
	if err := s.exec(ctx, "STOP REPLICA"); err != nil && !isError(err, errReplicaNotSetUp) {
		return fmt.Errorf("stopping replication before following %s: %w", src.Host, err)
	}
	statement := `CHANGE REPLICATION SOURCE TO SOURCE_HOST=?, SOURCE_PORT=?, SOURCE_USER=?, SOURCE_PASSWORD=?,
		SOURCE_AUTO_POSITION=1, SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=100000000, SOURCE_HEARTBEAT_PERIOD=0.5,
		SOURCE_SSL=1, SOURCE_SSL_CA=?, SOURCE_SSL_CERT=?, SOURCE_SSL_KEY=?, SOURCE_SSL_VERIFY_SERVER_CERT=1`
	if !s.version.has(changeReplicationSource) {
		statement = `CHANGE MASTER TO MASTER_HOST=?, MASTER_PORT=?, MASTER_USER=?, MASTER_PASSWORD=?,
		MASTER_AUTO_POSITION=1, MASTER_CONNECT_RETRY=1, MASTER_RETRY_COUNT=100000000, MASTER_HEARTBEAT_PERIOD=0.5,
		MASTER_SSL=1, MASTER_SSL_CA=?, MASTER_SSL_CERT=?, MASTER_SSL_KEY=?, MASTER_SSL_VERIFY_SERVER_CERT=1`
	}
	// From here on it is not given up: a START that is on its way when its
	// connection is closed could undo a later STOP.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := s.exec(ctx, statement, src.Host, src.Port, src.Account.User, src.Account.Password, src.CAFile, src.CertFile, src.KeyFile)
	if err != nil {
		return fmt.Errorf("pointing replication at %s: %w", src.Host, err)
	}
	if err := s.exec(ctx, "START REPLICA"); err != nil {
		return fmt.Errorf("starting replication from %s: %w", src.Host, err)
	}
	return nil
}

// StartReceiving starts the thread that receives from the source. It is not given
// up half way, or it could undo a later StopReceiving.
func (s *Server) StartReceiving(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return wrap("starting to receive from the source", s.exec(ctx, "START REPLICA IO_THREAD"))
}

// StopReceiving stops the thread that receives from the source, and with it the
// acknowledgements this server gives. It returns when the thread has ended.
func (s *Server) StopReceiving(ctx context.Context) error {
	err := s.exec(ctx, "STOP REPLICA IO_THREAD")
	if isError(err, errReplicaNotSetUp) {
		return nil
	}
	return wrap("stopping to receive from the source", err)
}

// StartApplying starts the threads that apply what was received.
func (s *Server) StartApplying(ctx context.Context) error {
	return wrap("starting to apply", s.exec(ctx, "START REPLICA SQL_THREAD"))
}

// StopReplication stops receiving and applying.
func (s *Server) StopReplication(ctx context.Context) error {
	err := s.exec(ctx, "STOP REPLICA")
	if isError(err, errReplicaNotSetUp) {
		return nil
	}
	return wrap("stopping replication", err)
}

// ForgetSource stops replication and removes the channel.
func (s *Server) ForgetSource(ctx context.Context) error {
	if err := s.StopReplication(ctx); err != nil {
		return err
	}
	return wrap("removing the replication channel", s.exec(ctx, "RESET REPLICA ALL"))
}

// WaitForGTID waits until the server has executed a set, at most so long, and
// tells whether it has.
func (s *Server) WaitForGTID(ctx context.Context, set gtid.Set, atMost time.Duration) (bool, error) {
	if set.IsEmpty() {
		return true, nil
	}
	var timedOut int
	err := s.db.QueryRowContext(ctx, "SELECT WAIT_FOR_EXECUTED_GTID_SET(?, ?)", set.String(), atMost.Seconds()).Scan(&timedOut)
	if err != nil {
		return false, fmt.Errorf("waiting until %s is executed: %w", set.Abbreviate(4), err)
	}
	return timedOut == 0, nil
}

func wrap(what string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}
