package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"strconv"

	"cnmsql.co/internal/core"
)

// CloneFrom replaces this server's data with a donor's. When it has succeeded the
// server ends itself to be started again, and the connection is lost: that error
// is no failure, and CloneState tells after the start what came of it.
func (s *Server) CloneFrom(ctx context.Context, donor string, port int, a Account) error {
	address := net.JoinHostPort(donor, strconv.Itoa(port))
	if err := s.setGlobal(ctx, "clone_valid_donor_list", address); err != nil {
		return err
	}
	err := s.exec(ctx, "CLONE INSTANCE FROM ?@?:"+strconv.Itoa(port)+" IDENTIFIED BY ? REQUIRE SSL",
		a.User, donor, a.Password)
	if err != nil {
		return fmt.Errorf("cloning from %s: %w", address, unquoted(err))
	}
	return nil
}

// CloneResult is what came of the last clone.
type CloneResult struct {
	// Completed: the data is the donor's. Otherwise, Error says why not, or it
	// is under way.
	Completed bool
	State     string
	Error     string
}

// CloneState asks what came of the last clone; it survives the restart that ends a clone. Where
// there was none, it returns the zero CloneResult and no error.
func (s *Server) CloneState(ctx context.Context) (CloneResult, error) {
	var r CloneResult
	var number int
	err := s.db.QueryRowContext(ctx,
		"SELECT STATE, ERROR_NO, ERROR_MESSAGE FROM performance_schema.clone_status ORDER BY ID DESC LIMIT 1").
		Scan(&r.State, &number, &r.Error)
	if err == sql.ErrNoRows {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("asking what came of the clone: %w", err)
	}
	r.Completed = r.State == "Completed" && number == 0
	return r, nil
}

// dataRemoved reports whether a clone has removed the users' data and come to nothing: it has an
// error, which is that it was interrupted when mysqld was ended meanwhile. What the server has
// executed is what it was before, and InnoDB may be damaged; mysqld goes on as if nothing was.
func (s *Server) dataRemoved(ctx context.Context) (removed bool, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1
		FROM performance_schema.clone_status s JOIN performance_schema.clone_progress p ON p.ID = s.ID
		WHERE p.STAGE = 'DROP DATA' AND p.STATE <> 'Not Started'
			AND s.STATE <> 'Completed' AND s.ERROR_NO <> 0)`).Scan(&removed)
	if err != nil {
		return false, fmt.Errorf("asking whether a clone has removed the data: %w", err)
	}
	return removed, nil
}

// CloneProgress asks how far a clone is: the stage under way, and how much of the bytes that are
// known of has been copied. far is another text whenever it has got on.
func (s *Server) CloneProgress(ctx context.Context, c *core.Clone) (far string, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT STAGE, STATE, COALESCE(ESTIMATE, 0), COALESCE(DATA, 0), "+
		"COALESCE(NETWORK, 0) FROM performance_schema.clone_progress ORDER BY ID")
	if err != nil {
		return "", fmt.Errorf("asking how far the clone is: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var estimate, done float64
	for rows.Next() {
		var stage, state string
		var e, d, received float64
		if err := rows.Scan(&stage, &state, &e, &d, &received); err != nil {
			return "", fmt.Errorf("asking how far the clone is: %w", err)
		}
		far += fmt.Sprintln(stage, state, d, received)
		estimate, done = estimate+e, done+d
		if state == "In Progress" {
			c.Stage = stage
		}
	}
	if estimate > 0 {
		c.Percent = min(int(100*done/estimate), 100)
	}
	return far, rows.Err()
}
