package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// markTimeout bounds an attempt to store a mark: parts wait for it.
const markTimeout = 10 * time.Second

func isMark(prefix, key string) bool {
	dir, is := strings.CutSuffix(key, markName)
	k, ok := readKey(prefix, dir+branchName)
	return is && ok && key == markKey(prefix, k.Epoch)
}

// tellComplete says in the store that all is archived, if that is so and due. One that cannot
// be written is tried again when the next one is due.
func (s *Shipper) tellComplete(ctx context.Context) error {
	now := time.Now()
	if !s.c.Marks || s.pending != nil || !s.pace().MarkIsDue(s.marked, now) {
		return nil
	}
	executed, err := s.c.Executed(ctx) // later than now: with all that was acknowledged until then
	if err != nil {
		return nil // it is told by who needs it
	}
	if err := s.refuseSetBack(executed); err != nil {
		return err
	}
	if !facts.Completes(s.source.Seen, executed) {
		return nil // there is something to read
	}
	m := facts.Mark{Format: facts.Format, Cluster: s.c.Cluster, Epoch: s.c.Epoch, ServerUUID: s.c.ServerUUID,
		Until: now.UTC(), Executed: executed}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := s.may(ctx); err != nil {
		return err
	}
	s.marked = now
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	err = s.c.Store.Put(ctx, markKey(s.c.Prefix, s.c.Epoch), append(text, '\n'))
	if err != nil {
		err = fmt.Errorf("saying that the archive is complete: %w", err)
	}
	s.noteMark(m.Until, err)
	return nil
}

// noteMark notes a mark that was written, or that it could not be, and takes that back when one
// could: no part may come for long that would.
func (s *Shipper) noteMark(until time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.status.CompleteUntil = until
	}
	switch {
	case err != nil:
		s.status.Failure, s.status.FailedAt = err, time.Now()
	case s.markFailed != nil && errors.Is(s.status.Failure, s.markFailed):
		s.status.Failure, s.status.FailedAt = nil, time.Time{}
	}
	s.markFailed = err
}

// getMark reads the mark of an epoch; nil if there is none, or none that says anything: a
// restore does without.
func getMark(ctx context.Context, s store.Store, prefix string, epoch int64) (*facts.Mark, error) {
	body, err := s.Get(ctx, markKey(prefix, epoch))
	if errors.Is(err, store.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(body, maxFacts))
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	var m facts.Mark
	if json.Unmarshal(bytes.TrimSpace(text), &m) != nil || m.Format != facts.Format || m.Epoch != epoch {
		return nil, nil
	}
	return &m, nil
}
