package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/internal/mysql"
	"cnmsql.co/test/mysqld"
	"cnmsql.co/test/shares"
)

// Names and passwords of the servers without an operator, which are on loopback and do not live long.
const (
	database   = "app"
	user       = "app"
	replicator = "replicator"
	password   = "secret"
)

// server is a mysqld without an operator, with the my.cnf that the operator would give it.
type server struct {
	dir     string
	files   mysqld.Files
	process *mysqld.Process
	share   *shares.Share
	// local is root through the socket.
	local  *mysql.Server
	client *driver.Config
	port   int
}

// newServer makes a server without data rows, and starts it. It accepts no writes.
func newServer(ctx context.Context, dir string, files mysqld.Files, version mysql.Version, id uint32) (*server, error) {
	s := &server{dir: dir, files: files}
	err := errors.Join(os.Mkdir(dir, 0o755), os.Mkdir(dir+"/tmp", 0o755), mysqld.Certify(dir))
	if err != nil {
		return nil, err
	}
	if err := s.configure(version, id); err != nil {
		return nil, err
	}
	initialize := files.Program(ctx, "sbin/mysqld", "--defaults-file="+dir+"/init.cnf", "--initialize-insecure")
	if out, err := initialize.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initialising a data directory: %w\n%s", err, out)
	}
	s.process, err = mysqld.Start(files.Program(ctx, "sbin/mysqld", "--defaults-file="+dir+"/my.cnf"))
	if err != nil {
		return nil, err
	}
	if s.share, err = shares.New("loadbench", filepath.Base(dir)); err == nil {
		err = s.share.Take(s.process.PID())
	}
	if err != nil {
		s.process.End()
		return nil, err
	}
	root := func() ([]mysql.Account, error) { return []mysql.Account{{User: "root"}}, nil }
	s.local = mysql.Open(dir+"/s", func() mysql.Version { return version }, root)
	if err = s.process.Answers(ctx, "mysqld", func() error { return s.local.Ping(ctx) }); err == nil {
		err = s.populate(ctx)
	}
	if err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// configure writes my.cnf as the operator renders it for an instance without limits.
func (s *server) configure(version mysql.Version, id uint32) error {
	var ports [2]int
	for i := range ports {
		address, err := mysqld.FreeAddress()
		if err != nil {
			return err
		}
		_, port, _ := net.SplitHostPort(address)
		if ports[i], err = strconv.Atoi(port); err != nil {
			return err
		}
	}
	s.port = ports[0]
	extra := s.files.Settings()
	extra["bind_address"] = "127.0.0.1"
	c := mysql.Config{
		Version: version, ServerID: id, Host: "127.0.0.1", Port: s.port, AdminAddress: "127.0.0.1", AdminPort: ports[1],
		DataDir: s.dir + "/data", TmpDir: s.dir + "/tmp", Socket: s.dir + "/s", PIDFile: s.dir + "/pid",
		CAFile: s.dir + "/ca.pem", CertFile: s.dir + "/cert.pem", KeyFile: s.dir + "/key.pem",
		SemiSyncReplica: true, CPUs: runtime.NumCPU(), Extra: extra,
		User: map[string]string{"max_connections": strconv.Itoa(maxConnections)},
	}
	authority, err := os.ReadFile(c.CAFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	s.client = clientOf(net.JoinHostPort(c.Host, strconv.Itoa(s.port)), user, password, database,
		&tls.Config{RootCAs: roots, ServerName: c.Host, MinVersion: tls.VersionTLS12})
	return errors.Join(os.WriteFile(s.dir+"/my.cnf", []byte(mysql.Render(c, mysql.ToServe)), 0o600),
		os.WriteFile(s.dir+"/init.cnf", []byte(mysql.Render(c, mysql.ToInitialize)), 0o600))
}

// clientOf is how clients log in: the same way to every server that is measured.
func clientOf(address, user, password, database string, secure *tls.Config) *driver.Config {
	c := driver.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd, c.DBName, c.TLS = "tcp", address, user, password, database, secure
	c.Timeout, c.ReadTimeout, c.WriteTimeout, c.Logger = 10*time.Second, answer, answer, &driver.NopLogger{}
	return c
}

// populate makes accounts and database, of which the binary log is told nothing, and lets
// clients in.
func (s *server) populate(ctx context.Context) error {
	conn, err := s.local.DB().Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return execAll(ctx, conn, "SET GLOBAL super_read_only = OFF", "SET sql_log_bin = 0",
		"CREATE USER "+user+" IDENTIFIED BY '"+password+"'", "GRANT ALL ON "+database+".* TO "+user,
		"CREATE USER "+replicator+" IDENTIFIED BY '"+password+"'", "GRANT REPLICATION SLAVE ON *.* TO "+replicator,
		"CREATE DATABASE "+database, "SET sql_log_bin = 1",
		"SET GLOBAL super_read_only = ON", "SET GLOBAL offline_mode = OFF")
}

// open lets the server take writes.
func (s *server) open(ctx context.Context) error {
	return s.exec(ctx, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
}

// follow makes it a replica, with its settings as they are.
func (s *server) follow(ctx context.Context, source *server) error {
	point := fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, SOURCE_USER='%s', "+
		"SOURCE_PASSWORD='%s', SOURCE_AUTO_POSITION=1, SOURCE_SSL=1, SOURCE_SSL_CA='%s/ca.pem'",
		source.port, replicator, password, source.dir)
	return s.exec(ctx, point, "START REPLICA")
}

func (s *server) exec(ctx context.Context, statements ...string) error {
	conn, err := s.local.DB().Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return execAll(ctx, conn, statements...)
}

func execAll(ctx context.Context, conn *sql.Conn, statements ...string) error {
	for _, st := range statements {
		if _, err := conn.ExecContext(ctx, st); err != nil {
			return fmt.Errorf("%s: %w", st, err)
		}
	}
	return nil
}

// end ends the server; its data stay.
func (s *server) end() {
	s.local.Close()
	s.process.End()
	s.share.End()
}
