package backupjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

func refuses(context.Context) (gtid.Set, error) {
	return gtid.Set{}, fmt.Errorf("asking: %w", &driver.MySQLError{Number: 1045, Message: "Access denied for user"})
}

// TestAnAccountThatIsMadeIsWaitedFor holds that a server which refuses it is asked again, and that this is told once.
func TestAnAccountThatIsMadeIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, told := time.Now(), 0
		donor := func(ctx context.Context) (gtid.Set, error) {
			if time.Since(began) < time.Minute {
				return refuses(ctx)
			}
			return says("1")(ctx)
		}
		must(t, awaitAccount(t.Context(), slog.New(slog.DiscardHandler), "db-3", donor,
			func(context.Context, error) { told++ }))
		if took := time.Since(began); took != time.Minute || told != 1 {
			t.Errorf("it waited %s, and told it %d times", took, told)
		}
	})
}

// TestAnAccountThatIsNeverMadeIsToldByName, with the instance and what to look at.
func TestAnAccountThatIsNeverMadeIsToldByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := awaitAccount(t.Context(), slog.New(slog.DiscardHandler), "db-3", refuses,
			func(context.Context, error) {})
		if reasonOf(err) != core.BackupAccountMissing || !strings.Contains(err.Error(), "db-3 does not let") ||
			!strings.Contains(err.Error(), "log of the primary") || time.Since(began) != accountLimit {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// TestWhatIsNoRefusalIsNotWaitedFor holds that a server which cannot be reached says nothing of the account, and that
// a Job which is stopped ends.
func TestWhatIsNoRefusalIsNotWaitedFor(t *testing.T) {
	silent := func(context.Context, error) { t.Error("it was told") }
	must(t, awaitAccount(t.Context(), slog.New(slog.DiscardHandler), "db-3", cannot, silent))
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the Pod is stopped"))
	if err := awaitAccount(over, slog.New(slog.DiscardHandler), "db-3", refuses,
		func(context.Context, error) {}); err == nil || err.Error() != "the Pod is stopped" {
		t.Errorf("a Job that is stopped: %v", err)
	}
}

// TestAJobThatIsNotLetInSaysSo in its Backup, and takes it back when it begins.
func TestAJobThatIsNotLetInSaysSo(t *testing.T) {
	o := world(t, v1alpha1.BackupRunning, "backup-uid")
	task, err := readTask(o.StoreDir)
	must(t, err)
	tell, err := newTeller(t.Context(), o, task)
	must(t, err)
	tell.lockedOut(t.Context(), errors.New("db-3 does not let it in"))
	if s := status(t, o); s.Phase != v1alpha1.BackupRunning || s.Reason != string(core.BackupAccountMissing) ||
		s.Error != "db-3 does not let it in" {
		t.Errorf("%+v", s)
	}
	must(t, tell.begins(t.Context()))
	if s := status(t, o); s.Reason != "" || s.Error != "" {
		t.Errorf("%+v", s)
	}
}
