package mysql

import (
	"context"
	"fmt"
	"time"
)

// Forever is the longest time the server waits for acknowledgements.
const Forever = 4294967295 * time.Millisecond

// RequireAcks makes each commit wait for so many replicas, at most for timeout.
// With 0 nobody is waited for, and every session that waits is released as if
// it had been acknowledged: callers do this only when no session waits, or when
// the user has taken the promise back.
func (s *Server) RequireAcks(ctx context.Context, acks int, timeout time.Duration) error {
	n := s.version().names()
	if acks <= 0 {
		return s.setGlobal(ctx, n.semiSyncSource+"_enabled", false)
	}
	if err := s.setGlobal(ctx, n.semiSyncSource+"_timeout", timeout.Milliseconds()); err != nil {
		return err
	}
	if err := s.setGlobal(ctx, n.semiSyncCount, acks); err != nil {
		return err
	}
	if err := s.waitAlone(ctx); err != nil {
		return err
	}
	return s.setGlobal(ctx, n.semiSyncSource+"_enabled", true)
}

// waitAlone has commits wait for their time also while too few replicas are attached, if somebody has switched that
// off. Where it is on nothing is set: that would end a fall-back to asynchronous replication before its time.
func (s *Server) waitAlone(ctx context.Context) error {
	alone, waits := s.version().names().semiSyncAlone, false
	if err := s.db.QueryRowContext(ctx, "SELECT @@global."+alone).Scan(&waits); err != nil {
		return fmt.Errorf("asking for %s: %w", alone, err)
	}
	if waits {
		return nil
	}
	return s.setGlobal(ctx, alone, true)
}

// AwaitAcksNoLonger makes commits go on at once without acknowledgements, as on a
// replica, whose applier commits too. Turning the feature off does the same but
// takes up to a second, until a thread of the server's looks up.
func (s *Server) AwaitAcksNoLonger(ctx context.Context) error {
	return s.setGlobal(ctx, s.version().names().semiSyncSource+"_timeout", 0)
}

// GiveAcks sets whether this server acknowledges as a replica. It counts from the
// next connection to the source on.
func (s *Server) GiveAcks(ctx context.Context, on bool) error {
	return s.setGlobal(ctx, s.version().names().semiSyncReplica+"_enabled", on)
}
