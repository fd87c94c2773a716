package mysql

import (
	"context"
	"fmt"
	"slices"
)

// AccountName is an account by what the server knows it by.
type AccountName struct{ User, Host string }

func (a AccountName) String() string { return fmt.Sprintf("'%s'@'%s'", a.User, a.Host) }

// reserved are the internal accounts, each with the one host that it is for. Nobody else's account may
// have one of these users: see Doubles.
func (i Internal) reserved() []AccountName {
	all := []AccountName{{i.Replication.User, "%"}, {i.Manager.User, "localhost"}}
	if i.Backup.User != "" {
		all = append(all, AccountName{i.Backup.User, "%"})
	}
	return all
}

// Doubles finds accounts of a reserved user for another host. The server asks the one whose host is the
// most specific, so that one of them keeps out whoever comes from there, whatever the internal account is.
func (s *Server) Doubles(ctx context.Context, i Internal) (found []AccountName, err error) {
	for _, own := range i.reserved() {
		rows, err := s.db.QueryContext(ctx, "SELECT USER, HOST FROM information_schema.USER_ATTRIBUTES WHERE USER = ?",
			own.User)
		if err != nil {
			return nil, fmt.Errorf("looking for other accounts named %s: %w", own.User, err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var a AccountName
			if err := rows.Scan(&a.User, &a.Host); err != nil {
				return nil, fmt.Errorf("looking for other accounts named %s: %w", own.User, err)
			}
			if !slices.Contains(i.reserved(), a) {
				found = append(found, a)
			}
		}
		if err := rows.Err(); err != nil {
			return nil, fmt.Errorf("looking for other accounts named %s: %w", own.User, err)
		}
	}
	return found, nil
}

// dropping are statements that drop accounts, also where others have them and this server no longer does.
func dropping(accounts []AccountName) (out []statement) {
	for _, a := range accounts {
		out = append(out, statement{"DROP USER IF EXISTS ?@?", []any{a.User, a.Host}})
	}
	return out
}
