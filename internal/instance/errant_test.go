package instance

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"cnmsql.co/internal/binlog"
	"cnmsql.co/internal/gtid"
)

// retold counts how often a report was made again.
type retold struct{ times atomic.Int32 }

func (r *retold) retell() { r.times.Add(1) }

// TestErrantTransactionsAreSearchedOnceAtATime lets somebody write on while the logs are read: what came
// meanwhile is looked for afterwards, by one more search, and not by one each.
func TestErrantTransactionsAreSearchedOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const server = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
		set := func(upTo string) gtid.Set { return gtid.MustParse(server + ":" + upTo) }
		var searched []string
		goesOn, by := make(chan struct{}), &retold{}
		e := &errantDater{log: slog.New(slog.DiscardHandler), by: by,
			search: func(errant gtid.Set) (binlog.Span, error) {
				searched = append(searched, errant.String())
				<-goesOn
				return binlog.Span{Found: errant}, nil
			}}
		for _, upTo := range []string{"1", "1-2", "1-3", "1-3"} {
			e.date(set(upTo))
			synctest.Wait()
		}
		if len(searched) != 1 {
			t.Errorf("it searches for %q at once", searched)
		}
		close(goesOn)
		synctest.Wait()
		if last := set("1-3").String(); len(searched) != 2 || searched[1] != last || by.times.Load() != 2 {
			t.Errorf("searched for %q and told %d times, want what was last wanted afterwards", searched,
				by.times.Load())
		}
		known := e.known()
		if known.TimesOf(set("1-3")) == nil {
			t.Error("it does not know when the last of them were committed")
		}
		e.date(set("1-4"))
		synctest.Wait()
		if len(searched) != 3 {
			t.Errorf("searched for %q, want one search more for a transaction more", searched)
		}
	})
}
