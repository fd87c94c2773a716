package instance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/mysql"
)

// sessions are those that clients have at mysqld: they are found and closed, and mysqld is closed
// to their writes.
type sessions struct {
	dirs Dirs
	by   emptied
	// asks is mysqld.
	asks func() *mysql.Server

	mu sync.Mutex
	// internal are the names of the internal accounts, by the files of their Secrets, as they were last read.
	internal map[string]string
}

// emptied is what sessions ask of their manager.
type emptied interface {
	// noteSessions takes note of how many are left to be closed before no write is accepted any more.
	noteSessions(left int)
	// refuseClients keeps clients away from a server that was made read-only, where they are to be.
	refuseClients(ctx context.Context) error
}

func newSessions(m *manager) *sessions {
	s := &sessions{dirs: m.opt.Dirs, by: m, internal: map[string]string{},
		asks: func() *mysql.Server { return m.roles }}
	_, _ = s.internalUsers() // while they can be read
	return s
}

// internalUsers are the accounts whose sessions are never a client's. Only names are asked for: no slip in a
// Secret may keep an instance from changing its role. One without a username leaves the name that it had. That of
// Backups, whose copies outlive a change of the role, is left out while there is none.
func (s *sessions) internalUsers() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	var unknown error
	for _, of := range []struct {
		dir, key string
		optional bool
	}{
		{s.dirs.Control, layout.KeyUsername, false}, {s.dirs.Replication, layout.KeyUsername, false},
		{s.dirs.Control, layout.KeyBackupUsername, true},
	} {
		file := filepath.Join(of.dir, of.key)
		name, err := readKey(of.dir, of.key)
		if err == nil && name != "" {
			s.internal[file] = name
		}
		switch was := s.internal[file]; {
		case was != "":
			names = append(names, was)
		case !of.optional:
			unknown = errors.Join(unknown, fmt.Errorf("the Secret mounted at %s has no %s, by which the "+
				"sessions of clients are told from those of the cluster: set it", of.dir, of.key), err)
		}
	}
	return names, unknown
}

func (s *sessions) open(ctx context.Context) ([]mysql.Session, error) {
	internal, err := s.internalUsers()
	if err != nil {
		return nil, err
	}
	return s.asks().ClientSessions(ctx, internal...)
}

// closeAll closes the client sessions that are open now.
func (s *sessions) closeAll(ctx context.Context) error {
	sessions, err := s.open(ctx)
	if err != nil {
		return err
	}
	return s.asks().Kill(ctx, sessions)
}

// refuseWrites makes the server read-only and closes the client sessions. At
// first they are left alone, so that short transactions end by themselves; one
// that holds up the lock is closed.
func (s *sessions) refuseWrites(ctx context.Context) error {
	readOnly := make(chan error, 1)
	go func() { readOnly <- s.asks().RefuseWrites(ctx) }()
	tick := time.NewTicker(agent.DemoteLook)
	defer tick.Stop()
	patience := time.After(agent.DemotePatience)
	for {
		select {
		case err := <-readOnly:
			if err != nil {
				return err
			}
			if err := s.by.refuseClients(ctx); err != nil {
				return err
			}
			return s.closeFormerSessions(ctx)
		case <-patience:
			patience = nil
		case <-tick.C:
			if patience != nil {
				continue
			}
			_ = s.closeAll(ctx)
			if s.acksCannotCome(ctx) {
				return errors.New("sessions wait for acknowledgements, and too few replicas are attached to give them")
			}
		}
	}
}

// acksCannotCome reports whether sessions wait for acknowledgements that cannot come, so that
// waiting on would only take time; false if mysqld does not say.
func (s *sessions) acksCannotCome(ctx context.Context) bool {
	semiSync, err := s.asks().SemiSync(ctx)
	return err == nil && agent.AcksCannotCome(semiSync)
}

// closeFormerSessions closes the sessions that were open when the server became
// read-only and waits until they are gone. Nobody but administrators connects later.
func (s *sessions) closeFormerSessions(ctx context.Context) error {
	former, err := s.open(ctx)
	if err != nil {
		return err
	}
	tick := time.NewTicker(agent.DemoteLook)
	defer tick.Stop()
	for left := former; len(left) > 0; {
		s.by.noteSessions(len(left))
		if left, err = s.closeLeft(ctx, former, left, tick.C); err != nil {
			return err
		}
	}
	return nil
}

// closeLeft closes what is left of former sessions and returns, a look later, what still is.
func (s *sessions) closeLeft(ctx context.Context, former, left []mysql.Session, look <-chan time.Time,
) ([]mysql.Session, error) {
	err := s.asks().Kill(ctx, left)
	var now []mysql.Session
	if err == nil {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-look:
			now, err = s.open(ctx)
		}
	}
	if err != nil {
		one := left[0]
		return nil, fmt.Errorf("closing client sessions: %d are left, the first (%d of %s) in command %q and "+
			"state %q: %w", len(left), one.ID, one.User, one.Command, one.Wait, err)
	}
	return stillThere(former, now), nil
}

// stillThere are those of the former sessions that may carry out a statement yet, or of which
// somebody may read success.
func stillThere(former, now []mysql.Session) []mysql.Session {
	open := map[int64]mysql.Session{}
	for _, s := range now {
		open[s.ID] = s
	}
	var left []mysql.Session
	for _, s := range former {
		if n, ok := open[s.ID]; ok && !n.EndsUnheard() {
			left = append(left, n)
		}
	}
	return left
}

// What sessions ask of their manager.

func (m *manager) noteSessions(left int) { m.update(func(s *state) { s.mysqld.sessions = left }) }

func (m *manager) refuseClients(ctx context.Context) error { return m.topology().refuseClients(ctx) }
