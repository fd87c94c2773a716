package writer

import (
	"crypto/rand"
	"crypto/tls"
	"database/sql"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Config says where to write and how fast. Only Addr and User are required; a zero value elsewhere means the default.
type Config struct {
	Addr     string // host:port, or the path of a socket
	User     string
	Password string
	TLS      *tls.Config // nil: no TLS

	Connections int           // default 4
	Interval    time.Duration // from one insert of a connection to its next; default 5 ms, negative: no pause
	Table       string        // database.table, created when it is not there; default cnmsql_writer.rows
	Run         string        // tells the rows of this writer from others' in the same table; default random

	DialTimeout  time.Duration // default 200 ms
	IOTimeout    time.Duration // for each answer of the server; default 1 s
	RetryPace    time.Duration // from the start of a failed attempt to the next; default 20 ms
	StartTimeout time.Duration // how long Start tries to find or create the table; default 30 s
}

var (
	tableName = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}\.[A-Za-z0-9_]{1,64}$`)
	runName   = regexp.MustCompile(`^[A-Za-z0-9-]{1,32}$`)
)

func (c Config) withDefaults() Config {
	setDefault(&c.Connections, 4)
	setDefault(&c.Interval, 5*time.Millisecond)
	setDefault(&c.Table, "cnmsql_writer.rows")
	setDefault(&c.Run, randomRun())
	setDefault(&c.DialTimeout, 200*time.Millisecond)
	setDefault(&c.IOTimeout, time.Second)
	setDefault(&c.RetryPace, 20*time.Millisecond)
	setDefault(&c.StartTimeout, 30*time.Second)
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func randomRun() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// validate guards the statements: table and run are part of their text.
func (c Config) validate() error {
	switch {
	case c.Addr == "":
		return fmt.Errorf("writer: no address to write to; give host:port")
	case !strings.HasPrefix(c.Addr, "/") && !strings.Contains(c.Addr, ":"):
		return fmt.Errorf("writer: the address %q has no port; give host:port", c.Addr)
	case !tableName.MatchString(c.Table):
		return fmt.Errorf("writer: the table %q is not of the form database.table with letters, digits and underscores",
			c.Table)
	case !runName.MatchString(c.Run):
		return fmt.Errorf("writer: the run %q is not 1 to 32 letters, digits and dashes", c.Run)
	case c.Connections < 0:
		return fmt.Errorf("writer: %d connections", c.Connections)
	}
	return nil
}

func (c Config) quotedTable() string {
	database, table, _ := strings.Cut(c.Table, ".")
	return "`" + database + "`.`" + table + "`"
}

func (c Config) database() string {
	database, _, _ := strings.Cut(c.Table, ".")
	return database
}

func (c Config) driver() *mysql.Config {
	d := mysql.NewConfig()
	d.Net, d.Addr, d.User, d.Passwd, d.TLS = "tcp", c.Addr, c.User, c.Password, c.TLS
	if strings.HasPrefix(c.Addr, "/") {
		d.Net = "unix"
	}
	d.Timeout, d.ReadTimeout, d.WriteTimeout = c.DialTimeout, c.IOTimeout, c.IOTimeout
	d.Logger = &mysql.NopLogger{} // lost connections are what this is about; they are counted, not logged
	return d
}

// Open gives a pool for the endpoint, patient enough for Verify to read a big table; its caller closes it.
func Open(c Config) (*sql.DB, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	d := c.driver()
	d.Timeout, d.ReadTimeout, d.WriteTimeout = 5*time.Second, time.Minute, time.Minute
	connector, err := mysql.NewConnector(d)
	if err != nil {
		return nil, fmt.Errorf("writer: prepare a connection to %s: %w", c.Addr, err)
	}
	return sql.OpenDB(connector), nil
}
