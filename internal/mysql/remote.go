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

// ExecutedAt asks a server over the network what it has executed.
func ExecutedAt(ctx context.Context, address string, t *tls.Config, a Account) (gtid.Set, error) {
	conf := driver.NewConfig()
	conf.Net, conf.Addr, conf.TLS = "tcp", address, t
	conf.User, conf.Passwd, conf.Timeout, conf.Logger = a.User, a.Password, 10*time.Second, &driver.NopLogger{}
	connector, err := driver.NewConnector(conf)
	if err != nil {
		return gtid.Set{}, err
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	var text string
	if err := db.QueryRowContext(ctx, "SELECT @@global.gtid_executed").Scan(&text); err != nil {
		return gtid.Set{}, fmt.Errorf("asking mysqld at %s for gtid_executed: %w", address, err)
	}
	return gtid.Parse(text)
}
