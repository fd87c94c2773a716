package mysql

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// AccountError is what is wrong with an account that a server should let in.
type AccountError struct {
	User string
	Err  error
}

func (e *AccountError) Error() string {
	return fmt.Sprintf("the account %s is not as it should be: %v", e.User, e.Err)
}

func (e *AccountError) Unwrap() error { return e.Err }

// CheckManager logs in through the socket as the manager does.
func CheckManager(ctx context.Context, socket string, a Account) error {
	conf := driver.NewConfig()
	conf.Net, conf.Addr = "unix", socket
	return checkDoor(ctx, conf, a, managerGrants, "")
}

// CheckReplication logs in at the admin interface as replicas do.
func CheckReplication(ctx context.Context, address string, t *tls.Config, a Account) error {
	conf := driver.NewConfig()
	conf.Net, conf.Addr, conf.TLS = "tcp", address, t
	return checkDoor(ctx, conf, a, replicationGrants, "REQUIRE X509")
}

// CheckBackup logs in over the network as the Job of a Backup does.
func CheckBackup(ctx context.Context, address string, t *tls.Config, a Account) error {
	conf := driver.NewConfig()
	conf.Net, conf.Addr, conf.TLS = "tcp", address, t
	return checkDoor(ctx, conf, a, backupGrants, "REQUIRE X509")
}

// checkDoor tells an *AccountError when the server's own word is that the account is not
// let in, or may not do what it is for. Any other error tells nothing of the account.
func checkDoor(ctx context.Context, conf *driver.Config, a Account, grants []string, requires string) error {
	conf.User, conf.Passwd, conf.Timeout, conf.Logger = a.User, a.Password, time.Second, &driver.NopLogger{}
	connector, err := driver.NewConnector(conf)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	conn, err := db.Conn(ctx)
	if err != nil {
		if isRefusedLogin(err) {
			return &AccountError{a.User, err}
		}
		return err
	}
	defer func() { _ = conn.Close() }()
	var text string
	if err := conn.QueryRowContext(ctx, "SHOW CREATE USER CURRENT_USER()").Scan(&text); err != nil {
		return err
	}
	if !strings.Contains(text, requires) {
		return &AccountError{a.User, errors.New("it lacks " + requires)}
	}
	return checkGrants(ctx, conn, a.User, grants)
}

var globalGrant = regexp.MustCompile(`^GRANT (.+) ON \*\.\* TO `)

func checkGrants(ctx context.Context, conn *sql.Conn, user string, want []string) error {
	rows, err := conn.QueryContext(ctx, "SHOW GRANTS")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var have []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		if m := globalGrant.FindStringSubmatch(text); m != nil {
			for _, one := range strings.Split(m[1], ",") {
				have = append(have, strings.TrimSpace(one))
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, one := range want {
		if !slices.Contains(have, one) && !slices.Contains(have, "ALL PRIVILEGES") {
			return &AccountError{user, errors.New("it lacks the privilege " + one)}
		}
	}
	return nil
}
