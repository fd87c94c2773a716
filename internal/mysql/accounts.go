package mysql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
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

// replicationGrants are what replicas, and those who clone, log in with, and why.
var replicationGrants = []string{
	"REPLICATION SLAVE",
	"BACKUP_ADMIN",             // be a clone's donor
	"CONNECTION_ADMIN",         // although clients have taken all connections
	"SERVICE_CONNECTION_ADMIN", // replicate by admin_address
}

// backupGrants are what the Job of a Backup logs in with, and why. It reads no binary log, so that it can neither
// acknowledge a commit nor keep a log.
var backupGrants = []string{
	"BACKUP_ADMIN", // be served as a clone's recipient
	// although clients have taken all connections; and so that a change of the primary, which closes the server to
	// clients, does not end the copy
	"CONNECTION_ADMIN",
}

// Internal are the accounts by which the instances of a cluster work. Backup is that of the Jobs of Backups; it is
// left as it is while its user is "".
type Internal struct{ Manager, Replication, Backup Account }

// manyConnections lets an account have as many connections as a server can have. An account's own
// limit of 0 would mean the parameter max_user_connections, which is the user's to set for
// clients.
const manyConnections = " WITH MAX_USER_CONNECTIONS 100000"

// unlimited undoes what somebody may have changed of an account.
const unlimited = manyConnections + " MAX_QUERIES_PER_HOUR 0 MAX_UPDATES_PER_HOUR 0 MAX_CONNECTIONS_PER_HOUR 0 " +
	"PASSWORD EXPIRE NEVER PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT " +
	"PASSWORD REQUIRE CURRENT DEFAULT FAILED_LOGIN_ATTEMPTS 0 PASSWORD_LOCK_TIME 0 ACCOUNT UNLOCK"

// users make the accounts what they should be, whatever they are. No policy for passwords that
// somebody gave the server may keep the instances out.
func (i Internal) users() []statement {
	source := []any{i.Replication.User, hashed(i.Replication.Password)}
	manager := []any{i.Manager.User, hashed(i.Manager.Password)}
	return []statement{
		{"CREATE USER IF NOT EXISTS ?@'%' " + byHash + " REQUIRE X509", source},
		{"CREATE USER IF NOT EXISTS ?@'localhost' " + byHash, manager},
		{"ALTER USER ?@'%' " + byHash + " REQUIRE X509" + unlimited, source},
		{"ALTER USER ?@'localhost' " + byHash + " REQUIRE NONE" + unlimited, manager},
	}
}

func (i Internal) grants() []statement {
	return []statement{
		{"GRANT " + strings.Join(replicationGrants, ", ") + " ON *.* TO ?@'%'", []any{i.Replication.User}},
		{"GRANT " + strings.Join(managerGrants, ", ") + " ON *.* TO ?@'localhost'", []any{i.Manager.User}},
		{"GRANT SELECT ON performance_schema.* TO ?@'localhost'", []any{i.Manager.User}}, // clone_status, lag
	}
}

// backup makes the account of Backups what it should be.
func (i Internal) backup() []statement {
	if i.Backup.User == "" {
		return nil
	}
	account := []any{i.Backup.User, hashed(i.Backup.Password)}
	return []statement{
		{"CREATE USER IF NOT EXISTS ?@'%' " + byHash + " REQUIRE X509", account},
		{"ALTER USER ?@'%' " + byHash + " REQUIRE X509" + unlimited, account},
		{"GRANT " + strings.Join(backupGrants, ", ") + " ON *.* TO ?@'%'", []any{i.Backup.User}},
	}
}

// statements make all of them so. What fails ends them: those by which the instances work are first.
func (i Internal) statements() []statement { return slices.Concat(i.users(), i.grants(), i.backup()) }

// InitFile is SQL that a server executes while it starts, before it lets anybody in,
// read-only or not. It makes the accounts what they should be on this server alone:
// nothing is written to the binary log. What fails ends the file, and not the server.
func (i Internal) InitFile() string {
	return "SET SESSION sql_log_bin = 0;\nSET SESSION sql_mode = '';\n" + script(i.statements())
}

// NewInitFile is the same for a server on data that were just initialised, whose only account is
// root without a password: the manager logs in so until the data are made, or cloned.
func NewInitFile() string {
	root := statement{"ALTER USER 'root'@'localhost'" + manyConnections, nil}
	return "SET SESSION sql_log_bin = 0;\n" + script([]statement{root})
}

// Scope is whom a change of accounts reaches.
type Scope bool

// Scopes. Here: the change is not written to the binary log, nor does it wait for
// anybody; it holds no transaction that others could lack.
const (
	Here       Scope = true
	Everywhere Scope = false
)

// Restore makes the accounts what they should be. What is missing may be what lets
// replicas acknowledge anything, so that it is done Here first, and Everywhere when
// somebody acknowledges. Doubles are dropped. An account that may not grant does what else it can.
func (s *Server) Restore(ctx context.Context, i Internal, doubles []AccountName, scope Scope) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("restoring the internal accounts: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "SET SESSION sql_log_bin = ?", scope == Everywhere); err != nil {
		return fmt.Errorf("restoring the internal accounts: %w", err)
	}
	defer func() { _ = conn.Raw(func(any) error { return sqldriver.ErrBadConn }) }() // its sql_log_bin is nobody else's
	return execAll(ctx, conn, "restoring the internal accounts",
		slices.Concat(i.users(), dropping(doubles), i.grants(), i.backup()))
}

// execAll executes statements in one session, up to the first that fails.
func execAll(ctx context.Context, conn executor, doing string, list []statement) error {
	for _, st := range list {
		if err := st.execute(ctx, conn); err != nil {
			return fmt.Errorf("%s: %s: %w", doing, st.text, err)
		}
	}
	return nil
}

// TakeOverFile is SQL like InitFile's, for data that come from another cluster: root gets
// a password that is known here, too, and may log in as a new cluster's may. Nobody else can
// log in at that moment.
func (f First) TakeOverFile() string {
	return f.internal().InitFile() + script([]statement{
		{"CREATE USER IF NOT EXISTS 'root'@'localhost' " + byHash, []any{hashed(f.Root.Password)}},
		f.rootHere(),
		{"GRANT ALL ON *.* TO 'root'@'localhost' WITH GRANT OPTION", nil},
	})
}

// rootHere is root as the manager logs in, on data that come from another cluster.
func (f First) rootHere() statement {
	return statement{"ALTER USER 'root'@'localhost' " + byHash + " REQUIRE NONE" + unlimited,
		[]any{hashed(f.Root.Password)}}
}

// ForgetAllSources ends replication on every channel, and forgets its source.
func (s *Server) ForgetAllSources(ctx context.Context) error {
	for _, statement := range []string{"STOP REPLICA", "RESET REPLICA ALL"} {
		if err := s.exec(ctx, statement); err != nil {
			return fmt.Errorf("forgetting sources: %s: %w", statement, err)
		}
	}
	return nil
}

// TakeOver makes data that come from another cluster this one's own, with passwords that
// are known here. It is connected to as root. Nothing is written to the binary log: replicas
// are cloned. What the data hold besides stays.
func (s *Server) TakeOver(ctx context.Context, f First) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("logging in to the restored server: %w", err)
	}
	defer func() { _ = conn.Close() }()
	access, err := f.access(ctx, conn)
	if err != nil {
		return err
	}
	// What was replayed may have changed the accounts once more.
	list := slices.Concat([]statement{{"SET SESSION sql_log_bin = 0", nil}}, f.internal().statements(),
		[]statement{
			f.rootHere(),
			{"ALTER USER IF EXISTS 'root'@'%' " + byPassword + " ATTRIBUTE ?",
				[]any{f.Root.Password, first(f.Root).attribute()}},
			{"CREATE USER IF NOT EXISTS ?@'%' " + byPassword, []any{f.Owner.User, f.Owner.Password}},
			{"ALTER USER ?@'%' " + byPassword, []any{f.Owner.User, f.Owner.Password}},
			access,
		})
	if f.RootEverywhere {
		list = append(list, f.rootEverywhere()...)
	}
	list = append(list, f.noted()...)
	return execAll(ctx, conn, "taking over the restored data", list)
}

// First is what a new server begins with.
type First struct {
	Manager, Replication, Root, Owner Account
	// Backup is as Internal has it.
	Backup Account
	// RootEverywhere lets root log in over the network.
	RootEverywhere                    bool
	Database, CharacterSet, Collation string
	// Statements of the user's, run last.
	Statements []string
}

func (f First) internal() Internal {
	return Internal{Manager: f.Manager, Replication: f.Replication, Backup: f.Backup}
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
	access, err := f.access(ctx, conn)
	if err != nil {
		return err
	}
	for _, st := range append([]statement{{"SET SESSION sql_log_bin = 0", nil}}, f.statements(access)...) {
		if err := st.execute(ctx, conn); err != nil {
			if IsAnswer(err) {
				err = fmt.Errorf("%w; spec.bootstrap cannot be changed: if it is wrong, delete this Cluster and "+
					"create it again", err)
			}
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

// Error names the statement by its index, and the server's refusal by its number: the text of
// either may hold a password.
func (e *UserStatementError) Error() string {
	return fmt.Sprintf("spec.bootstrap.initdb.postInitSQL[%d] failed: %s; the server's words are not repeated here, "+
		"for they may quote the statement; "+
		"spec.bootstrap cannot be changed: create a new Cluster with a corrected statement", e.Index, byNumber(e.Err))
}

// Unwrap returns what the server said, which may hold a password.
func (e *UserStatementError) Unwrap() error { return e.Err }

func (f First) runUserStatements(ctx context.Context, conn *sql.Conn) error {
	// They mean what they mean to the server's clients.
	if _, err := conn.ExecContext(ctx, "SET SESSION time_zone = @@global.time_zone"); err != nil {
		return err
	}
	for i, text := range f.Statements {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return &UserStatementError{Index: i, Err: err}
		}
	}
	// A statement of the user's may have changed it.
	_, err := conn.ExecContext(ctx, "SET SESSION sql_log_bin = 0, time_zone = '+00:00'")
	return err
}

func (f First) statements(access statement) []statement {
	out := []statement{
		{"CREATE DATABASE IF NOT EXISTS " + identifier(f.Database) + f.charset(), nil},
		{"CREATE USER ?@'%' " + byPassword, []any{f.Owner.User, f.Owner.Password}},
		access,
	}
	out = slices.Concat(out, f.internal().statements(),
		[]statement{{"ALTER USER 'root'@'localhost' " + byPassword + manyConnections, []any{f.Root.Password}}})
	if f.RootEverywhere {
		out = append(out, f.rootEverywhere()...)
	}
	return append(out, f.noted()...)
}

// rootEverywhere lets root log in over the network, and there with TLS only: whoever reads
// along would hold the server. The owner of the database may do without, unless
// require_secure_transport is on: that is the user's choice.
func (f First) rootEverywhere() []statement {
	return []statement{
		{"CREATE USER IF NOT EXISTS 'root'@'%' " + byPassword, []any{f.Root.Password}},
		// data of before may have it without
		{"ALTER USER 'root'@'%' " + byPassword + " REQUIRE SSL ATTRIBUTE ?",
			[]any{f.Root.Password, first(f.Root).attribute()}},
		{"GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION", nil},
	}
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

// AcceptClients ends offline mode, in which a server is set up, started and demoted.
func (s *Server) AcceptClients(ctx context.Context) error {
	return s.setGlobal(ctx, "offline_mode", false)
}

// Unsynced are options by which commits do not wait for the disk. Data that are written so count
// only once mysqld has ended cleanly and the volume is synced.
func Unsynced() []string { return []string{"--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0"} }

// FlushAtShutdown has a shutdown leave nothing in the redo log, whatever the user wished.
func (s *Server) FlushAtShutdown(ctx context.Context) error {
	return s.setGlobal(ctx, "innodb_fast_shutdown", 1)
}

func identifier(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
