package mysql

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/internal/gtid"
)

// ExecutedAt asks a server over the network what it has executed. It waits until ctx ends for one
// that hangs.
func ExecutedAt(ctx context.Context, address string, t *tls.Config, a Account) (gtid.Set, error) {
	var text string
	if err := askAt(ctx, address, t, a, "SELECT @@global.gtid_executed", &text); err != nil {
		return gtid.Set{}, fmt.Errorf("asking mysqld at %s for gtid_executed: %w", address, err)
	}
	return gtid.Parse(text)
}

// SourceAt is what ExecutedAt is, and whether clients may write to the server.
func SourceAt(ctx context.Context, address string, t *tls.Config,
	a Account) (executed gtid.Set, writes bool, err error) {
	var text string
	if err := askAt(ctx, address, t, a, "SELECT @@global.gtid_executed, NOT @@global.read_only", &text,
		&writes); err != nil {
		return gtid.Set{}, false, fmt.Errorf("asking mysqld at %s what it has executed: %w", address, err)
	}
	executed, err = gtid.Parse(text)
	return executed, writes, err
}

// EncryptedLogsAt are the variables by which a server encrypts its redo and undo logs. It waits as
// ExecutedAt does.
func EncryptedLogsAt(ctx context.Context, address string, t *tls.Config, a Account) (on []string, err error) {
	var redo, undo bool
	if err := askAt(ctx, address, t, a, "SELECT @@global.innodb_redo_log_encrypt, @@global.innodb_undo_log_encrypt",
		&redo, &undo); err != nil {
		return nil, fmt.Errorf("asking mysqld at %s whether it encrypts its logs: %w", address, err)
	}
	if redo {
		on = append(on, "innodb_redo_log_encrypt")
	}
	if undo {
		on = append(on, "innodb_undo_log_encrypt")
	}
	return on, nil
}

// askAt asks a server one thing, over a connection of its own.
func askAt(ctx context.Context, address string, t *tls.Config, a Account, question string, into ...any) error {
	conf := driver.NewConfig()
	conf.Net, conf.Addr, conf.TLS = "tcp", address, t
	conf.User, conf.Passwd, conf.Timeout, conf.Logger = a.User, a.Password, 10*time.Second, &driver.NopLogger{}
	connector, err := driver.NewConnector(conf)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	return db.QueryRowContext(ctx, question).Scan(into...)
}
