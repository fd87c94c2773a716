package verify

import (
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backups"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/backup"
	"cnmsql.co/internal/core/verify"
)

// schedulePlan is what becomes of the schedule; the zero one of a Cluster without.
type schedulePlan struct {
	status *v1alpha1.VerificationScheduleStatus
	events []core.Event
	Wake   time.Duration
}

// scheduleOf is the Cluster's schedule; nil when it has none.
func scheduleOf(c *v1alpha1.Cluster) *v1alpha1.VerifySpec {
	if c.Spec.Backup == nil || c.Spec.Backup.Verify == nil || c.Spec.Backup.Verify.Schedule == "" {
		return nil
	}
	return c.Spec.Backup.Verify
}

// schedule adds to the facts the time of the schedule for which a verification is to begin,
// and returns what is remembered of the schedule then. It is a ScheduledBackup's in all but
// what is made. While a verification runs, a time that passes waits, and is no problem.
func (r *Reconciler) schedule(c *v1alpha1.Cluster, f *verify.Facts) schedulePlan {
	spec := scheduleOf(c)
	if spec == nil {
		return schedulePlan{}
	}
	before := c.Status.VerificationSchedule
	busy := f.Record.Phase.Runs() || f.Copy.Exists && !f.Copy.Foreign
	s := r.scheduleFacts(c, spec)
	if h := f.WaitsFor(); !busy && h != nil {
		s.HindersDue = h.Message
	}
	done := backup.Decide(s)
	if done.Create != nil && busy {
		return schedulePlan{status: before}
	}
	if done.Create != nil {
		f.Slot = done.Create.Time
	}
	st := done.Status
	if last := s.Status; !last.LastCheck.IsZero() && st.Next.Equal(last.Next) && st.LastSlot.Equal(last.LastSlot) {
		st.LastCheck = last.LastCheck // a problem alone is told by an event
	}
	out := schedulePlan{Wake: done.Wake,
		status: &v1alpha1.VerificationScheduleStatus{LastCheckTime: backups.Stamp(st.LastCheck),
			LastScheduleTime: backups.Stamp(st.LastSlot), NextScheduleTime: backups.Stamp(st.Next),
			Problem: problemOf(s, st)}}
	if p := out.status.Problem; p != "" && (before == nil || before.Problem != p) {
		out.events = []core.Event{{Warning: true, Reason: core.ReasonVerificationHeldBack, Message: p}}
	}
	return out
}

// scheduleFacts are what is known of the schedule. It counts from when it is first seen:
// nothing that passed before is made up for.
func (r *Reconciler) scheduleFacts(c *v1alpha1.Cluster, spec *v1alpha1.VerifySpec) backup.Schedule {
	s := backup.Schedule{Name: c.Name, Now: r.Now(), Created: c.CreationTimestamp.Time}
	if st := c.Status.VerificationSchedule; st != nil {
		s.Status = backups.Remembered(st.LastCheckTime, st.LastScheduleTime, st.NextScheduleTime)
	} else {
		s.Created = s.Now
	}
	backups.SetSlots(&s, "spec.backup.verify", spec.Schedule, spec.TimeZone, c.CreationTimestamp.Time)
	return s
}

// problemOf is why none begins, in the words of verifications.
func problemOf(s backup.Schedule, st backup.ScheduleStatus) string {
	switch st.Problem {
	case "", s.Invalid, s.HindersDue:
		return st.Problem
	}
	if st.LastSlot.After(s.Now) {
		return "the last verification is of " + st.LastSlot.Format(time.RFC3339) + ", which has not come yet: " +
			"the clock of the operator's node was ahead, or is behind. None begins by itself before then"
	}
	return "the schedule never comes, as a 30th of February: correct spec.backup.verify.schedule"
}
