package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// statement is SQL with its arguments, which are never part of an error or a log.
type statement struct {
	text string
	args []any
}

// executor is a session, or any of a server's.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// How a statement gives an account its password. A hash is held
// to no policy, and sets the plugin, too; a password leaves an account the plugin that it has.
const (
	byPassword = "IDENTIFIED BY ?"
	byHash     = "IDENTIFIED WITH " + sha2Plugin + " AS ?"
)

// execute executes it. What sets a password that the server's policy refuses is executed with
// its hash, and so is that of an account whose plugin is not loaded, as mysql_native_password is not
// from 9.0 on, with which nobody could log in: the Secret says what the password is, and in it may be
// one that was generated, or the one that the account has already.
func (s statement) execute(ctx context.Context, on executor) error {
	_, err := on.ExecContext(ctx, s.text, s.args...)
	before, _, setsPassword := strings.Cut(s.text, byPassword)
	if setsPassword && isError(err, errPasswordWeak, errPasswordUsed, errNoPlugin) {
		args, i := slices.Clone(s.args), strings.Count(before, "?")
		args[i] = hashed(fmt.Sprint(args[i]))
		_, err = on.ExecContext(ctx, strings.Replace(s.text, byPassword, byHash, 1), args...)
	}
	return err
}

// script is statements as a server reads them from a file.
func script(list []statement) string {
	var b strings.Builder
	for _, st := range list {
		b.WriteString(st.inline() + ";\n")
	}
	return b.String()
}

// inline puts the arguments into the text, for a session without sql_mode. A ? in an argument is
// none of the text's.
func (s statement) inline() string {
	var b strings.Builder
	parts := strings.Split(s.text, "?")
	for i, a := range s.args {
		literal := strings.NewReplacer("\\", "\\\\", "'", "\\'", "\n", "\\n", "\r", "\\r", "\x00",
			"\\0").Replace(fmt.Sprint(a))
		b.WriteString(parts[i] + "'" + literal + "'")
	}
	return b.String() + strings.Join(parts[len(s.args):], "?")
}
