package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// managerGrants are what the instance manager's own account may do, and why. It
// exists @localhost only and is reached through the socket.
var managerGrants = []string{
	"SYSTEM_VARIABLES_ADMIN",  // super_read_only, semi-sync
	"REPLICATION_SLAVE_ADMIN", // start, stop and point replication
	"REPLICATION CLIENT",      // SHOW REPLICA STATUS
	"RELOAD",                  // RESET REPLICA ALL
	"PROCESS",                 // see the sessions that a change of role closes
	"CONNECTION_ADMIN",        // close them; get in when max_connections is reached; reload TLS
	"SYSTEM_USER",             // close those of root and the like, too
	"CREATE USER",             // follow a changed password
	"GROUP_REPLICATION_ADMIN", // join and leave a group, hand its primary over
}

// First is what a new server begins with.
type First struct {
	Manager, Replication, Root, Owner Account
	// RootEverywhere lets root log in over the network.
	RootEverywhere                    bool
	Database, CharacterSet, Collation string
	// Statements of the user's, run last.
	Statements []string
}

// Populate makes accounts and database on a server that was just initialised. It
// is connected to as root without a password, and nothing is written to the
// binary log: replicas are cloned, and get all this with the data.
func (s *Server) Populate(ctx context.Context, f First) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connecting to the new server: %w", err)
	}
	defer func() { _ = conn.Close() }()
	for _, st := range append([]statement{{"SET SESSION sql_log_bin = 0", nil}}, f.statements()...) {
		if _, err := conn.ExecContext(ctx, st.text, st.args...); err != nil {
			return fmt.Errorf("making accounts and database: %s: %w", st.text, err)
		}
	}
	return f.runUserStatements(ctx, conn)
}

// UserStatementError is the failure of a statement that the user gave.
type UserStatementError struct {
	Index int
	Err   error
}

// Error names the statement by its index: its text may hold a password.
func (e *UserStatementError) Error() string {
	return fmt.Sprintf("spec.bootstrap.initdb.postInitSQL[%d] failed: %v; spec.bootstrap cannot be changed: create a new Cluster with a corrected statement", e.Index, e.Err)
}

func (e *UserStatementError) Unwrap() error { return e.Err }

func (f First) runUserStatements(ctx context.Context, conn *sql.Conn) error {
	for i, text := range f.Statements {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return &UserStatementError{Index: i, Err: err}
		}
	}
	// A statement of the user's may have changed it.
	_, err := conn.ExecContext(ctx, "SET SESSION sql_log_bin = 0")
	return err
}

// statement is SQL with its arguments, which are never part of an error or a log.
type statement struct {
	text string
	args []any
}

func (f First) statements() []statement {
	out := []statement{
		{"CREATE DATABASE IF NOT EXISTS " + identifier(f.Database) + f.charset(), nil},
		{"CREATE USER ?@'%' IDENTIFIED BY ?", []any{f.Owner.User, f.Owner.Password}},
		{"GRANT ALL ON " + grantee(f.Database) + ".* TO ?@'%'", []any{f.Owner.User}},
		{"CREATE USER ?@'%' IDENTIFIED BY ? REQUIRE X509", []any{f.Replication.User, f.Replication.Password}},
		// BACKUP_ADMIN: be a clone's donor, and CONNECTION_ADMIN: although clients have
		// taken all connections. SERVICE_CONNECTION_ADMIN: replicate by admin_address.
		{"GRANT REPLICATION SLAVE, BACKUP_ADMIN, CONNECTION_ADMIN, SERVICE_CONNECTION_ADMIN ON *.* TO ?@'%'", []any{f.Replication.User}},
		{"CREATE USER ?@'localhost' IDENTIFIED BY ?", []any{f.Manager.User, f.Manager.Password}},
		{"GRANT " + strings.Join(managerGrants, ", ") + " ON *.* TO ?@'localhost'", []any{f.Manager.User}},
		{"GRANT SELECT ON performance_schema.* TO ?@'localhost'", []any{f.Manager.User}}, // clone_status, lag
		{"ALTER USER 'root'@'localhost' IDENTIFIED BY ?", []any{f.Root.Password}},
	}
	if f.RootEverywhere {
		out = append(out, statement{"CREATE USER 'root'@'%' IDENTIFIED BY ?", []any{f.Root.Password}},
			statement{"GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION", nil})
	}
	return out
}

func (f First) charset() string {
	var out string
	if f.CharacterSet != "" {
		out += " CHARACTER SET " + identifier(f.CharacterSet)
	}
	if f.Collation != "" {
		out += " COLLATE " + identifier(f.Collation)
	}
	return out
}

// ChangePassword sets the password of an account that exists; one that does not
// is left alone.
func (s *Server) ChangePassword(ctx context.Context, a Account, host string) error {
	if err := s.exec(ctx, "ALTER USER IF EXISTS ?@? IDENTIFIED BY ?", a.User, host, a.Password); err != nil {
		return fmt.Errorf("changing the password of %s@%s: %w", a.User, host, err)
	}
	return nil
}

// AcceptClients ends offline mode, in which a new server is set up.
func (s *Server) AcceptClients(ctx context.Context) error {
	return s.setGlobal(ctx, "offline_mode", false)
}

func identifier(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// grantee quotes a database's name in GRANT, where _ and % stand for any.
func grantee(database string) string {
	return identifier(strings.NewReplacer(`_`, `\_`, `%`, `\%`).Replace(database))
}
