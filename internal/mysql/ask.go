package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// question is a statement, and what reads its answer.
type question struct {
	// what is being done, for an error.
	what, query string
	read        func(*sql.Rows) error
}

// ask has questions answered one after the other, and ends with the first that is not.
func (s *Server) ask(ctx context.Context, questions ...question) error {
	if s.together {
		return s.askTogether(ctx, questions)
	}
	for i := range questions {
		if err := s.askTogether(ctx, questions[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// askTogether sends questions in one packet. The server answers them in their order all the
// same, each when the one before is answered.
func (s *Server) askTogether(ctx context.Context, questions []question) error {
	var text []string
	for _, q := range questions {
		text = append(text, q.query)
	}
	rows, err := s.db.QueryContext(ctx, strings.Join(text, ";"))
	if err != nil {
		return fmt.Errorf("%s: %w", questions[0].what, err)
	}
	defer func() { _ = rows.Close() }()
	for i, q := range questions {
		if i > 0 && !rows.NextResultSet() {
			return fmt.Errorf("%s: %w", q.what, unanswered(rows))
		}
		if err := q.read(rows); err != nil {
			return fmt.Errorf("%s: %w", q.what, err)
		}
	}
	return rows.Close()
}

// unanswered is why there is no answer.
func unanswered(rows *sql.Rows) error {
	if err := rows.Err(); err != nil {
		return err
	}
	return errors.New("mysqld answered fewer questions than it was asked")
}

// readOne reads the only row of an answer.
func readOne(rows *sql.Rows, into ...any) error {
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	return rows.Scan(into...)
}

// readMap reads the first row of an answer whose columns differ between versions; nil if there
// is none.
func readMap(rows *sql.Rows) (map[string]string, error) {
	columns, err := rows.Columns()
	if err != nil || !rows.Next() {
		return nil, errors.Join(err, rows.Err())
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for i, c := range columns {
		if values[i].Valid {
			out[c] = values[i].String
		}
	}
	return out, rows.Err()
}

// readPairs reads names and values.
func readPairs(rows *sql.Rows) (map[string]string, error) {
	out := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		out[name] = value
	}
	return out, rows.Err()
}
