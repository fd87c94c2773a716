package backupjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

const (
	// catchUpLimit is how long the donor may take to have what the primary had when the
	// Job began.
	catchUpLimit = 10 * time.Minute
	// askLimit bounds a question to a server, which may hang.
	askLimit = 10 * time.Second
	// asksFail is how many questions to the donor may fail, one after the other.
	asksFail = 5
	// catchUpLook is between two looks at it.
	catchUpLook = time.Second
)

// lagsError is the error when the donor lags too much to be backed up.
type lagsError struct{ message string }

func (e *lagsError) Error() string { return e.message }

// reasonOf names why there is no backup.
func reasonOf(err error) core.Reason {
	var lags *lagsError
	var lockedOut *lockedOutError
	switch {
	case errors.As(err, &lags):
		return core.BackupDonorLags
	case errors.As(err, &lockedOut):
		return core.BackupAccountMissing
	}
	return core.BackupNotTaken
}

// executed asks a server what it has executed.
type executed func(context.Context) (gtid.Set, error)

func (e executed) ask(ctx context.Context) (gtid.Set, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return e(ctx)
}

// catchUp waits until the donor has executed what the primary had: a backup holds all that
// was committed before it was asked for. Who can not ask the primary takes what the donor
// has: in an outage that is what a backup is wanted for.
func catchUp(ctx context.Context, log *slog.Logger, t Task, primary, donor executed) error {
	wanted, err := primary.ask(ctx)
	if err != nil {
		log.Warn("cannot ask the primary what it holds; the backup may lack its latest transactions",
			"primary", t.Primary, "instance", t.Instance, "error", err)
		return context.Cause(ctx)
	}
	limit := time.NewTimer(catchUpLimit)
	defer limit.Stop()
	tick := time.NewTicker(catchUpLook)
	defer tick.Stop()
	lacks := wanted
	for failed, told := 0, false; ; {
		has, err := donor.ask(ctx)
		switch {
		case err == nil:
			failed, lacks = 0, wanted.Subtract(has)
		case failed == asksFail && !backup.IsDial(err): // one that cannot be reached may be starting
			return err
		default:
			failed++
		}
		if err == nil && lacks.IsEmpty() {
			return nil
		}
		if err == nil && !told {
			told = true
			log.Info("the Job waits until the instance has caught up with the primary", "instance", t.Instance,
				"transactionsBehind", lacks.Count())
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			if err != nil {
				return err
			}
			return &lagsError{fmt.Sprintf("%s lacks %d transactions that the primary %s had %s ago: wait until it "+
				"has caught up, "+
				"and create another Backup, or one with target: primary", t.Instance, lacks.Count(),
				t.Primary, catchUpLimit)}
		case <-tick.C:
		}
	}
}
