package archive

import (
	"bytes"
	"errors"
	"testing"

	"cnmsql.co/internal/binlog"
	"cnmsql.co/internal/gtid"
)

// TestWhatAFailoverLostCanBeRead: of three parts, of which the first survived.
func TestWhatAFailoverLostCanBeRead(t *testing.T) {
	story("", t, func(t *testing.T, former *logs, m *memory) {
		s := begin(t, former.config(m, 1))
		former.commit(1, 10)
		settle()
		former.commit(1, 5)
		settle()
		former.commit(1, 3)
		settle()
		must(t, s.end())
		successor := newLogs(t)
		successor.commit(1, 12)
		s = begin(t, successor.config(m, 2))
		successor.commit(2, 1)
		settle()
		must(t, s.end())

		a, err := Load(t.Context(), m, prefix)
		must(t, err)
		lost := lostOf(t, m, a)
		if len(lost) != 1 || !lost[0].GTIDs.Equal(ids(1, "13-18")) || len(lost[0].Steps) != 2 {
			t.Fatalf("lost are %+v", lost)
		}
		var log bytes.Buffer
		must(t, place(m).WriteLost(t.Context(), lost[0], &log))
		if got := transactionsIn(t, &log); !got.Equal(ids(1, "13-18")) {
			t.Errorf("the log has %s", got)
		}
		lost[0].Steps[0].Take = ids(1, "13-99")
		if err := place(m).WriteLost(t.Context(), lost[0], &log); !errors.Is(err, PartDamaged) {
			t.Errorf("a part that lacks transactions: %v", err)
		}
	})
}

// transactionsIn reads a binary log as anybody would.
func transactionsIn(t *testing.T, log *bytes.Buffer) (all gtid.Set) {
	t.Helper()
	stream, err := binlog.NewStream(log)
	must(t, err)
	for {
		e, err := stream.Next()
		if err != nil {
			return all
		}
		if e.Begins != nil {
			all = all.Union(e.Begins.ID)
		}
	}
}
