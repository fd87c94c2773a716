package backupjob

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

const source = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"

var lagging = Task{Instance: "db-3", Primary: "db-1"}

func says(set string) executed {
	return func(context.Context) (gtid.Set, error) { return gtid.MustParse(source + ":" + set), nil }
}

func cannot(context.Context) (gtid.Set, error) { return gtid.Set{}, errors.New("no route to host") }

func TestABackupHoldsWhatThePrimaryHadWhenItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		donor := func(ctx context.Context) (gtid.Set, error) {
			if time.Since(began) < time.Minute {
				return says("1-9")(ctx)
			}
			return says("1-10")(ctx)
		}
		must(t, catchUp(t.Context(), slog.New(slog.DiscardHandler), lagging, says("1-10"), donor))
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it waited %s", took)
		}
	})
}

func TestADonorThatDoesNotCatchUpIsRefusedByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := catchUp(t.Context(), slog.New(slog.DiscardHandler), lagging, says("1-10"), says("1-7"))
		if reasonOf(err) != core.BackupDonorLags || !strings.Contains(err.Error(), "db-3 lacks 3 transactions") {
			t.Errorf("%v", err)
		}
	})
}

func TestAPrimaryThatCannotBeAskedIsNotWaitedFor(t *testing.T) {
	must(t, catchUp(t.Context(), slog.New(slog.DiscardHandler), lagging, cannot, cannot))
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the Pod is stopped"))
	if err := catchUp(over, slog.New(slog.DiscardHandler), lagging, cannot, cannot); err == nil {
		t.Error("a Job that is stopped goes on")
	}
}

func TestADonorThatCannotBeAskedIsAskedAgain(t *testing.T) {
	for fails, isTaken := range map[int]bool{1: true, asksFail: true, asksFail + 1: false} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			donor := func(ctx context.Context) (gtid.Set, error) {
				if asked++; asked <= fails {
					return cannot(ctx)
				}
				return says("1")(ctx)
			}
			err := catchUp(t.Context(), slog.New(slog.DiscardHandler), lagging, says("1"), donor)
			if (err == nil) != isTaken || err != nil && reasonOf(err) != core.BackupNotTaken {
				t.Errorf("a donor that fails %d times: %v", fails, err)
			}
		})
	}
}

// A server that hangs lets its node's kernel take the connection, and says nothing.
func TestADonorThatHangsIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context) (gtid.Set, error) {
			<-ctx.Done()
			return gtid.Set{}, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := catchUp(ctx, slog.New(slog.DiscardHandler), lagging, says("1"), hangs)
		if reasonOf(err) != core.BackupNotTaken || ctx.Err() != nil {
			t.Errorf("%v; its time is over: %t", err, ctx.Err() != nil)
		}
	})
}

func TestADonorThatEncryptsItsLogsIsRefusedBeforeAnythingIsUploaded(t *testing.T) {
	answers := func(names []string, err error) error {
		return readable(t.Context(), lagging, func(context.Context) ([]string, error) { return names, err })
	}
	err := answers([]string{"innodb_redo_log_encrypt"}, nil)
	if !errors.Is(err, clone.LogsEncrypted) || !strings.Contains(err.Error(), "db-3 has innodb_redo_log_encrypt=ON:") {
		t.Errorf("got %v", err)
	}
	must(t, answers(nil, nil))
	must(t, answers(nil, errors.New("too many connections")))
}
