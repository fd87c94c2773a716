package backupjob

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/mysql"
)

const (
	// accountLimit is how long an instance may refuse the Job's account: the primary makes it, once its manager
	// knows of it and has its Secret, and the instance has to receive that.
	accountLimit = 10 * time.Minute
	// accountLook is between two looks.
	accountLook = 5 * time.Second
)

// lockedOutError is the error when the instance does not let the Job in.
type lockedOutError struct{ message string }

func (e *lockedOutError) Error() string { return e.message }

// awaitAccount waits while the instance refuses the Job's account, and has it told once. Whatever else is wrong
// is found out by who asks next.
func awaitAccount(ctx context.Context, log *slog.Logger, instance string, donor executed,
	tell func(context.Context, error)) error {
	limit := time.NewTimer(accountLimit)
	defer limit.Stop()
	tick := time.NewTicker(accountLook)
	defer tick.Stop()
	for told := false; ; {
		_, err := donor.ask(ctx)
		if !mysql.IsAccessDenied(err) {
			return context.Cause(ctx)
		}
		why := &lockedOutError{fmt.Sprintf("%s does not let the account of Backups in (%v): the primary makes it, or "+
			"sets its password, within a minute or two, once its Pod runs a manager of this release", instance, err)}
		if !told {
			told = true
			log.Warn("the instance refuses the account of Backups; the Job waits until the primary has made it",
				"instance", instance, "error", err)
			tell(ctx, why)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			why.message += fmt.Sprintf(". That did not come about within %s: see the manager's log of the primary, "+
				"and create another Backup once it has", accountLimit)
			return why
		case <-tick.C:
		}
	}
}

// donorAsked asks an instance what it has executed, each time with the account as the kubelet has brought it.
func (o Options) donorAsked(t Task) executed {
	return func(ctx context.Context) (gtid.Set, error) {
		donor, err := donorOf(o, t, t.Host)
		if err != nil {
			return gtid.Set{}, err
		}
		return executedAt(donor)(ctx)
	}
}

// lockedOut tells why nothing is copied yet. What cannot be told is told with what comes of the backup.
func (t *teller) lockedOut(ctx context.Context, why error) {
	if err := t.change(ctx, func(s *v1alpha1.BackupStatus) {
		s.Reason, s.Error = string(core.BackupAccountMissing), why.Error()
	}); err != nil {
		t.o.Log.Warn("cannot write the status of the Backup", "error", err)
	}
}
