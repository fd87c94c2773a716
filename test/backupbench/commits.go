package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// alone is how long inserts are measured while nothing else happens.
	alone = 15 * time.Second
	// pause between two inserts: what is asked of the server is then much the same, however
	// fast it answers.
	pause = 5 * time.Millisecond
)

// commits measures single-row inserts of the server that is backed up.
func (s *stage) commits(ctx context.Context) error { return s.commitsOf(ctx, "", "a backup", s.donor) }

// commitsOf measures single-row inserts alone, and while a server is backed up to each store.
func (s *stage) commitsOf(ctx context.Context, of, backup string, donor *server) error {
	first := len(s.Commits)
	s.begin()
	within, cancel := context.WithTimeout(ctx, alone)
	took, err := s.donor.inserts(within)
	cancel()
	if err != nil {
		return err
	}
	s.AddCommits(of+"no backup", took)
	for _, store := range []string{"directory", "S3"} {
		if took, err = s.insertsDuring(ctx, store, donor); err != nil {
			return err
		}
		s.AddCommits(of+"during "+backup+" to "+store, took)
	}
	for _, c := range s.Commits[first:] {
		say("inserts, %s: median %.2f ms, p99 %.2f ms", c.What, 1000*c.Median, 1000*c.P99)
	}
	return nil
}

// insertsDuring takes a backup, and inserts until it is taken.
func (s *stage) insertsDuring(ctx context.Context, store string, donor *server) ([]time.Duration, error) {
	j, err := s.jobOf(store, fmt.Sprintf("inserts-%d", len(s.Commits)), donor)
	if err != nil {
		return nil, err
	}
	j.OnReplica = donor == s.replica
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
