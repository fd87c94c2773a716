package mysql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// Account is a name and a password.
type Account struct{ User, Password string }

// Server is a way to speak to one mysqld for one purpose. Health, roles, orders
// and metrics each have their own, so that a statement which hangs in one of
// them holds up none of the others.
type Server struct {
	db      *sql.DB
	version func() Version
	// together: its connections take several questions at once.
	together bool
	// idle is what the last status needs not ask for again.
	idle idle
}

// Open prepares connections through a socket. The accounts are asked for at each
// connection and tried in their order until one is let in, so that a password
// that has changed on one side only locks nobody out. No connection is made
// before it is needed, nor its version asked for.
func Open(socket string, version func() Version, accounts func() ([]Account, error)) *Server {
	return open(socket, version, accounts, false)
}

// OpenForStatus is Open for who asks the same questions again and again. It takes nobody
// else's words into a statement: where one may hold several, what was slipped into it is one.
func OpenForStatus(socket string, version func() Version, accounts func() ([]Account, error)) *Server {
	return open(socket, version, accounts, true)
}

func open(socket string, version func() Version, accounts func() ([]Account, error), together bool) *Server {
	conf := driver.NewConfig()
	conf.Net, conf.Addr = "unix", socket
	conf.Timeout = time.Second
	conf.InterpolateParams = true
	conf.MultiStatements = together
	conf.Logger = &driver.NopLogger{}
	// A user's global settings must not change what our statements mean.
	// In a zone whose clocks change, a time of before the change is an hour off.
	conf.Params = map[string]string{"autocommit": "1", "sql_mode": "''", "max_execution_time": "0",
		"time_zone": "'+00:00'"}
	db := sql.OpenDB(connector{conf: conf, accounts: accounts})
	// One connection is kept open: when users exhaust max_connections, ours is there.
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(1)
	return &Server{db: db, version: version, together: together}
}

type connector struct {
	conf     *driver.Config
	accounts func() ([]Account, error)
}

// Connect makes a connection with the first account that is let in.
func (c connector) Connect(ctx context.Context) (sqldriver.Conn, error) {
	accounts, err := c.accounts()
	if err != nil {
		return nil, err
	}
	refused := errors.New("there is no account to log in with")
	for _, a := range accounts {
		conf := c.conf.Clone()
		conf.User, conf.Passwd = a.User, a.Password
		one, err := driver.NewConnector(conf)
		if err != nil {
			return nil, fmt.Errorf("preparing a connection to mysqld at %s: %w", c.conf.Addr, err)
		}
		conn, err := one.Connect(ctx)
		if !IsAccessDenied(err) {
			return conn, err
		}
		refused = err
	}
	return nil, refused
}

// Driver is part of the interface.
func (c connector) Driver() sqldriver.Driver { return driver.MySQLDriver{} }

// Reset closes connections that nobody uses. They are recreated, with the account
// that is right then.
func (s *Server) Reset() {
	s.db.SetMaxIdleConns(0)
	s.db.SetMaxIdleConns(1)
}

// DB is the connections themselves, for what no method does.
func (s *Server) DB() *sql.DB { return s.db }

// Close closes the connections.
func (s *Server) Close() { _ = s.db.Close() }

// Ping asks whether the server answers; nil when it does. IsAnswer tells of the error whether it
// is the server's own word.
func (s *Server) Ping(ctx context.Context) error {
	var one int
	return s.db.QueryRowContext(ctx, "SELECT 1").Scan(&one)
}

func (s *Server) exec(ctx context.Context, statement string, args ...any) error {
	_, err := s.db.ExecContext(ctx, statement, args...)
	return err
}

func wrap(what string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// until asks again and again until it is done, fails, or ctx ends.
func until(ctx context.Context, every time.Duration, done func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// setGlobal sets a variable. Names are constants of this package.
func (s *Server) setGlobal(ctx context.Context, name string, value any) error {
	if err := s.exec(ctx, "SET GLOBAL "+name+" = ?", value); err != nil {
		return fmt.Errorf("setting %s to %v: %w", name, value, err)
	}
	return nil
}

// ReloadTLS makes the server read its certificates again; connections that are
// open keep theirs.
func (s *Server) ReloadTLS(ctx context.Context) error {
	for _, channel := range []string{"mysql_main", "mysql_admin"} {
		if err := s.exec(ctx, "ALTER INSTANCE RELOAD TLS FOR CHANNEL "+channel); err != nil {
			return fmt.Errorf("reloading the certificates of %s: %w", channel, err)
		}
	}
	return nil
}

// Numbers of errors that mean something to us.
const (
	errUnknownVariable = 1193
	errNoSuchThread    = 1094
	errChannelUnknown  = 3074
	errReplicaNotSetUp = 1200
	errTooMany         = 1040
	errAccessDenied    = 1045
	errNoPrivilege     = 1227
	errTLSConnection   = 2026
	errServerShutdown  = 1053
	errGroupBusy       = 3724
	errNoPlugin        = 1524
	errPasswordWeak    = 1819
	errPasswordUsed    = 3638
	errCopyIsTaken     = 3874 // ER_CLONE_IN_PROGRESS
)

// errRelayLogWrite is what SHOW REPLICA STATUS tells of a receiver that could not write.
const errRelayLogWrite = "13122" // ER_REPLICA_RELAY_LOG_WRITE_FAILURE

func isError(err error, numbers ...uint16) bool {
	var e *driver.MySQLError
	if !errors.As(err, &e) {
		return false
	}
	for _, n := range numbers {
		if e.Number == n {
			return true
		}
	}
	return false
}

// IsAccessDenied reports whether the server refused the account.
func IsAccessDenied(err error) bool { return isRefusedLogin(err) }

// IsShutdown reports whether the server is about to end.
func IsShutdown(err error) bool { return isError(err, errServerShutdown) }

// IsAnswer reports whether err is a server's own word, as opposed to a connection
// that failed or a deadline that passed.
func IsAnswer(err error) bool {
	var e *driver.MySQLError
	return errors.As(err, &e)
}
