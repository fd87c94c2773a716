package plugin

import (
	"errors"
	"fmt"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/moment"
)

// checkTarget reads where the restore is to end: one of --to, --gtid and --immediate, or
// none of them.
func (w *restoreWish) checkTarget(now time.Time) (err error) {
	given := 0
	for _, is := range []bool{w.to != "", w.gtid != "", w.immediate} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return errors.New("--to, --gtid and --immediate all say where the restore ends; give one of them, or none " +
			"for all that was archived")
	case w.exclusive && w.gtid == "":
		return errors.New("--exclusive goes with --gtid: it ends before the first transaction of that set; add " +
			"--gtid, or leave it out")
	case w.to != "":
		w.at, err = pastOf(w.to, now)
	case w.gtid != "":
		err = checkGTIDs(w.gtid)
	}
	return err
}

// checkGTIDs refuses what is no set, and an empty one.
func checkGTIDs(text string) error {
	set, err := gtid.Parse(text)
	if err == nil && set.IsEmpty() {
		err = errors.New("it is empty")
	}
	if err != nil {
		return fmt.Errorf("--gtid %s is no GTID set: %w; write UUID:NUMBER, or a set as @@gtid_executed shows it",
			text, err)
	}
	return nil
}

// pastOf reads a moment that has passed.
func pastOf(text string, now time.Time) (time.Time, error) {
	t, err := moment.Parse("to", text, now)
	if err == nil && t.After(now) {
		err = fmt.Errorf("--to %s is in the future (it is %s now); leave --to out to restore all that was archived",
			text, exact(now))
	}
	return t, err
}

// exact is a time as spec.bootstrap.recovery.recoveryTarget.targetTime takes it.
func exact(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z07:00") }

// target says where the restore ends.
func (w *restoreWish) target(now time.Time) string {
	switch {
	case w.to != "":
		return fmt.Sprintf("as they were at %s (%s ago)", exact(w.at), ago(now, &w.at))
	case w.exclusive:
		return "as they were before the first transaction of " + w.gtid
	case w.gtid != "":
		return "until all of " + w.gtid + " is there"
	case w.immediate:
		return "as they are in the backup"
	}
	return "with all that was archived"
}

// base says which backup it begins with.
func (w *restoreWish) base(from *v1alpha1.Backup) string {
	switch {
	case from != nil:
		return fmt.Sprintf("the Backup %s (%s)", from.Name, from.Status.BackupID)
	case w.backupID != "":
		return "the backup " + w.backupID + " in the object store"
	}
	return "the newest backup in the object store that suits"
}

// recoveryTarget is nil when all that was archived is replayed.
func (w *restoreWish) recoveryTarget() *v1alpha1.RecoveryTarget {
	switch {
	case w.to != "":
		return &v1alpha1.RecoveryTarget{TargetTime: exact(w.at)}
	case w.gtid != "":
		return &v1alpha1.RecoveryTarget{TargetGTID: w.gtid, Exclusive: w.exclusive}
	case w.immediate:
		return &v1alpha1.RecoveryTarget{TargetImmediate: new(true)}
	}
	return nil
}
