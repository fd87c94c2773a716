package main

import (
	"context"
	"fmt"
	"os"

	"cnmsql.co/test/mysqld"
)

// server is a real mysqld on loopback.
type server struct{ *mysqld.Server }

// newServer prepares a server in a directory of its own, without data.
func newServer(dir string, files mysqld.Files) (*server, error) {
	s, err := mysqld.New(dir, files)
	if err != nil {
		return nil, err
	}
	s.Flags = []string{"--innodb-redo-log-capacity=100M"}
	return &server{s}, os.Mkdir(s.Data(), 0o755)
}

// start starts the server on the data that it has, and waits until it can be asked.
func (s *server) start(ctx context.Context, id int, more ...string) error {
	return s.Start(ctx, id, append(more, "--plugin-load-add=mysql_clone.so", "--local-infile=ON",
		"--innodb-buffer-pool-size=1G")...)
}

func (s *server) exec(ctx context.Context, queries ...string) error {
	for _, q := range queries {
		if _, err := s.DB.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	return nil
}

func (s *server) text(ctx context.Context, query string) (out string, err error) {
	if err = s.DB.QueryRowContext(ctx, query).Scan(&out); err != nil {
		err = fmt.Errorf("%s: %w", query, err)
	}
	return out, err
}
