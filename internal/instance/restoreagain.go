package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/restore"
)

const (
	// restoreAgain is when a restore that failed is started again; one that had begun to fetch waits
	// twice as long with each failure, up to restoreSeldom: what it fetches may be terabytes.
	restoreAgain  = 30 * time.Second
	restoreSeldom = time.Hour
	// restoreFullAgain is when one is that had filled its volume, if nobody changes the Cluster.
	restoreFullAgain = 5 * time.Minute
)

// restoreFailures is how often a restore has failed that had begun to fetch its backup, since the
// Cluster was changed last, and what was damaged then.
type restoreFailures struct {
	Times      int               `json:"times,omitempty"`
	Generation int64             `json:"generation,omitempty"`
	Suspects   *restore.Suspects `json:"suspects,omitempty"`
}

// another is one failure more.
func (f restoreFailures) another(generation int64) restoreFailures {
	if f.Generation != generation {
		f = restoreFailures{Generation: generation, Suspects: f.Suspects}
	}
	f.Times++
	return f
}

// pause is until the next attempt, where one waits for so long behind the first failure.
func (f restoreFailures) pause(first time.Duration) time.Duration {
	pause := max(first, restoreAgain)
	for n := 1; n < f.Times && pause < restoreSeldom; n++ {
		pause *= 2
	}
	return min(pause, restoreSeldom)
}

// restoreProblem gives what a restore failed with a name.
func restoreProblem(err error) *namedError {
	if named, is := errors.AsType[*namedError](err); is {
		return named
	}
	why := core.InstanceRestoreFailed
	if errors.Is(err, backup.ArchiveTaken) {
		why = core.InstanceRestoreNotOurs
	}
	return &namedError{core.Problem{Reason: why, Message: err.Error()}, restoreAgain}
}

// countFailure has the next attempt wait for longer than this one did. The volume remembers it: an
// attempt costs the same whichever manager makes it.
func (r *restorer) countFailure(ctx context.Context, generation int64, err error) error {
	if ctx.Err() != nil {
		return err // it was ended, and has not failed
	}
	failed := r.record().get().RestoreFailures.another(generation)
	failed.Suspects = failed.Suspects.With(err)
	if err := r.record().change(func(v *volumeRecord) { v.RestoreFailures = failed }); err != nil {
		r.log.Error("cannot record how often the restore has failed", "error", err)
	}
	p := *restoreProblem(err)
	p.again = failed.pause(p.again)
	if failed.Times > 1 {
		p.Message += fmt.Sprintf("; it has failed %d times, and begins anew after %s, or at once when the Cluster "+
			"is changed or the Pod deleted", failed.Times, p.again)
	}
	return &p
}
