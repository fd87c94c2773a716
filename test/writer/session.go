package writer

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// session is one connection. After any error it is closed and another is made: it may lead to a demoted primary.
type session interface {
	insert(connection int, seq int64) error
	close()
}

// endpoint makes sessions; tests put another behind the Writer.
type endpoint interface {
	connect(ctx context.Context) (session, error)
}

// server is the real endpoint. It uses the driver without database/sql, whose pool would repeat a
// statement on a second connection by itself, and so blur what an attempt is.
type server struct {
	config    Config
	connector driver.Connector
}

func newServer(c Config) (*server, error) {
	connector, err := mysql.NewConnector(c.driver())
	if err != nil {
		return nil, fmt.Errorf("writer: prepare connections to %s: %w", c.Addr, err)
	}
	return &server{c, connector}, nil
}

func (s *server) connect(ctx context.Context) (session, error) {
	connection, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	return connection, nil
}

func (s *server) open(ctx context.Context) (*serverSession, error) {
	// The handshake is several answers; together they get the time of one, or a server that
	// accepts and then hangs costs seconds.
	ctx, cancel := context.WithTimeout(ctx, s.config.DialTimeout+s.config.IOTimeout)
	defer cancel()
	connection, err := s.connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &serverSession{connection, s.config}, nil
}

type serverSession struct {
	connection driver.Conn
	config     Config
}

func (s *serverSession) insert(connection int, seq int64) error {
	return s.exec(fmt.Sprintf("INSERT INTO %s (run, conn, seq, payload, at) VALUES ('%s', %d, %d, 'row %d of "+
		"connection %d', NOW(6))",
		s.config.quotedTable(), s.config.Run, connection, seq, seq, connection))
}

// exec has no context: a statement that was sent is waited for, until IOTimeout, because giving
// up earlier would turn known outcomes into unknown ones.
func (s *serverSession) exec(statement string) error {
	_, err := s.connection.(driver.ExecerContext).ExecContext(context.Background(), statement, nil)
	return err
}

func (s *serverSession) close() { s.connection.Close() } // nothing to learn: it is being given up

// prepareTable finds or creates the table, trying again until the context ends: the endpoint may still be coming up.
func (s *server) prepareTable(ctx context.Context) error {
	for {
		err := s.prepareOnce(ctx)
		if err == nil {
			return nil
		}
		if hopeless(err) {
			return fmt.Errorf("writer: prepare table %s at %s: %w; check user, password and privileges (CREATE, "+
				"INSERT, SELECT on %s.*)",
				s.config.Table, s.config.Addr, err, s.config.database())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("writer: prepare table %s at %s: %w after %s of trying; is that the address of a "+
				"writable MySQL?",
				s.config.Table, s.config.Addr, err, s.config.StartTimeout)
		case <-time.After(s.config.RetryPace):
		}
	}
}

func (s *server) prepareOnce(ctx context.Context) error {
	connection, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer connection.close()
	// Asking first lets a user without the right to create databases write to a table that is there.
	if connection.exec("SELECT 1 FROM "+s.config.quotedTable()+" LIMIT 0") == nil {
		return nil
	}
	if err := connection.exec("CREATE DATABASE IF NOT EXISTS `" + s.config.database() + "`"); err != nil {
		return err
	}
	return connection.exec("CREATE TABLE IF NOT EXISTS " + s.config.quotedTable() + ` (
		run VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
		conn INT NOT NULL,
		seq BIGINT NOT NULL,
		payload VARBINARY(255) NOT NULL,
		at TIMESTAMP(6) NOT NULL,
		PRIMARY KEY (run, conn, seq)
	) ENGINE=InnoDB`)
}

// hopeless errors are about who asks, not about the state of the server, and do not pass by waiting.
func hopeless(err error) bool {
	var answer *mysql.MySQLError
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.Number {
	// Access denied: to a database, to the server (user, host), to a table, for lack of a privilege.
	case 1044, 1045, 1130, 1142, 1227:
		return true
	}
	return false
}
