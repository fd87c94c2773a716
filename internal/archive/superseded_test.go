package archive

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	facts "cnmsql.co/internal/core/archive"
)

// TestAFormerPrimaryStoresNothingMore of what it commits when the next one has begun a branch, although
// nobody has told it yet.
func TestAFormerPrimaryStoresNothingMore(t *testing.T) {
	story("that it commits late", t, func(t *testing.T, former *logs, m *memory) {
		s := begin(t, former.config(m, 1))
		former.commit(1, 10)
		settle()
		isNext(t, m, 3)
		former.commit(1, 2)
		settle()
		storedNothingMore(t, s, m)
	})
	story("of which an attempt took long", t, func(t *testing.T, former *logs, m *memory) {
		s := begin(t, former.config(m, 1))
		former.commit(1, 10)
		settle()
		m.before = func(ctx context.Context, key string) error {
			if strings.Contains(key, "/0000000001/") {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		former.commit(1, 2)
		time.Sleep(time.Minute)
		isNext(t, m, 2)
		time.Sleep(5 * time.Minute)
		storedNothingMore(t, s, m)
	})
}

// isNext has a successor begin the branch of an epoch.
func isNext(t *testing.T, m *memory, epoch int64) {
	t.Helper()
	successor := newLogs(t)
	successor.commit(1, 12)
	s := begin(t, successor.config(m, epoch))
	settle()
	must(t, s.end())
}

func storedNothingMore(t *testing.T, s *running, m *memory) {
	t.Helper()
	if err := s.end(); !errors.Is(err, PromotionNotHeld) {
		t.Errorf("it ended with: %v", err)
	}
	last, err := lastPart(t.Context(), m, prefix, 1)
	must(t, err)
	if !facts.Reached(facts.Branch{}, last).Equal(ids(1, "1-10")) {
		t.Errorf("part %d is stored, with %s", last.Sequence, last.GTIDs)
	}
}
