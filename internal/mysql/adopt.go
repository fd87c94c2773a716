package mysql

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// CommitEmpty commits an empty transaction under each of these numbers. One that the server
// has executed already is left out by itself.
func (s *Server) CommitEmpty(ctx context.Context, numbers []string) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("adopting transactions: %w", err)
	}
	// The connection is not used again: a number of its session's would be given to whatever
	// came next.
	defer func() {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		_ = conn.Close()
	}()
	for _, n := range numbers {
		for _, text := range []string{"SET SESSION gtid_next = '" + n + "'", "BEGIN", "COMMIT"} {
			if _, err := conn.ExecContext(ctx, text); err != nil {
				return fmt.Errorf("adopting the transaction %s: %w", n, err)
			}
		}
	}
	return nil
}
