package main

import (
	"context"
	"fmt"
	"time"

	"cnmsql.co/test/shares"
)

const (
	// alone is how long inserts are measured while nothing else happens.
	alone = 15 * time.Second
	// pause between two inserts: what is asked of the server is then much the same, however
	// fast it answers.
	pause = 5 * time.Millisecond
)

// commits measures single-row inserts of the server that is backed up.
func (s *stage) commits(ctx context.Context) error {
	if err := s.commitsAlone(ctx, ""); err != nil {
		return err
	}
	return s.commitsDuring(ctx, "during a backup", s.donor, nil)
}

// commitsAlone measures single-row inserts while nothing else happens.
func (s *stage) commitsAlone(ctx context.Context, of string) error {
	s.begin()
	within, cancel := context.WithTimeout(ctx, alone)
	defer cancel()
	took, err := s.donor.inserts(within)
	if err != nil {
		return err
	}
	s.addCommits(of+"no backup", took)
	return nil
}

// commitsDuring measures them while a server is backed up to each store; whose is the share of the
// cores that the backup has, nil if it has none.
func (s *stage) commitsDuring(ctx context.Context, what string, donor *server, whose *shares.Share) error {
	for _, store := range []string{"directory", "S3"} {
		j, err := s.jobOf(store, fmt.Sprintf("inserts-%d", len(s.Commits)), donor)
		if err != nil {
			return err
		}
		j.OnReplica = donor == s.replica
		if whose != nil {
			j.Share = whose.Path()
		}
		took, err := s.insertsDuring(ctx, j)
		if err != nil {
			return err
		}
		s.addCommits(what+" to "+store, took)
	}
	return nil
}

func (s *stage) addCommits(what string, took []time.Duration) {
	s.AddCommits(what, took)
	c := s.Commits[len(s.Commits)-1]
	say("inserts, %s: median %.2f ms, p99 %.2f ms", c.What, 1000*c.Median, 1000*c.P99)
}

// insertsDuring takes a backup, and inserts until it is taken.
func (s *stage) insertsDuring(ctx context.Context, j job) ([]time.Duration, error) {
	s.begin()
	within, cancel := context.WithCancel(ctx)
	taken := make(chan error, 1)
	go func() {
		_, err := j.run(ctx)
		cancel()
		taken <- err
	}()
	took, err := s.donor.inserts(within)
	cancel()
	if failed := <-taken; failed != nil {
		return nil, failed
	}
	return took, err
}

// inserts tells how long each row waited for its OK, until the context ends. A row that has
// begun then is awaited.
func (s *server) inserts(ctx context.Context) (took []time.Duration, err error) {
	conn, err := s.DB.Conn(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	for ctx.Err() == nil {
		begun := time.Now()
		if _, err := conn.ExecContext(context.WithoutCancel(ctx),
			"INSERT INTO bench.inserts (v) VALUES (REPEAT('v', 200))"); err != nil {
			return nil, fmt.Errorf("inserting: %w", err)
		}
		took = append(took, time.Since(begun))
		<-time.After(pause)
	}
	return took, nil
}
