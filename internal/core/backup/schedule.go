package backup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
)

const (
	// lookAgain is the longest time until a schedule is looked at again: a timer does not
	// notice that the clock was set.
	lookAgain = 10 * time.Minute
	// lookAgainHindered is the same while something outside hinders a due Backup.
	lookAgainHindered = time.Minute
	// clockSlack is how far ahead the last slot may be before it is told: clocks are
	// corrected by less.
	clockSlack = time.Hour
	// slotFormat is how a slot, in UTC, is part of its Backup's name.
	slotFormat = "20060102150405"
)

// Schedule is what is known of a ScheduledBackup. Moments count in whole seconds.
//
// A slot is a moment at which the schedule wants a Backup.
type Schedule struct {
	Name                 string
	Now, Created         time.Time
	Suspended, Immediate bool
	// Invalid says why there are no slots, and what to do; "" when Next is given.
	Invalid string
	// Next is the first slot after a moment; zero when there is none. It depends on the
	// moment alone, and does not fall while the moment grows.
	Next func(time.Time) time.Time
	// Hindered says why no Backup can be made now, and what to do; "" when nothing is
	// known to hinder it.
	Hindered string
	// HindersDue says why what is due cannot be made now, and what to do; "" when nothing
	// hinders it. Unlike Hindered it is no problem while nothing is due.
	HindersDue string
	// KeepCompleted and KeepFailed are how many ended Backups are kept, but for those by which it is told how
	// the last ones ended, see least; all when nil.
	KeepCompleted, KeepFailed *int
	// Backups of this schedule that exist.
	Backups []Made
	Status  ScheduleStatus
}

// Made is a Backup that exists.
type Made struct {
	Name    string
	Outcome Outcome
	Created time.Time
	// Deleted tells whether it was deleted, and is about to be gone.
	Deleted bool
}

// Outcome is how a Backup ended.
type Outcome int

// Outcomes. Whatever is not known to have ended is Unfinished.
const (
	Unfinished Outcome = iota
	Completed
	Failed
)

// ScheduleStatus is what is remembered of a schedule from one look to the next.
type ScheduleStatus struct {
	// LastCheck is when this was last changed; zero before the first look.
	LastCheck time.Time
	// LastSlot is the newest slot that has its Backup, and LastBackup that one's name.
	LastSlot   time.Time
	LastBackup string
	// Next is the first slot that still wants a Backup: one that has passed is held back,
	// or was missed. Zero while the schedule is suspended or invalid, so that what passes
	// meanwhile is not made up for.
	Next time.Time
	// Problem says why none is made, and what to do.
	Problem string
}

// Slot is a Backup to make: for which moment, and under which name.
type Slot struct {
	Time time.Time
	Name string
}

// SchedulePlan is what to do, in this order: make the Backup, write the status, tell, delete.
type SchedulePlan struct {
	Create *Slot
	Status ScheduleStatus
	Events []core.Event
	// Delete are names of Backups that have ended and are beyond the limits.
	Delete []string
	// Wake is when to look again; 0: not before something changes.
	Wake time.Duration
}

// Decide tells what a schedule has to do now. Repeated after a crash at any point, it makes
// no second Backup of a slot: the Backup itself tells that its slot is done, and none is
// deleted before the status says so.
func Decide(s Schedule) SchedulePlan {
	exact := s.Now
	s = s.inSeconds()
	plan := SchedulePlan{Status: ScheduleStatus{LastCheck: s.Status.LastCheck}}
	plan.Status.LastSlot, plan.Status.LastBackup = s.newestMade()
	reason := s.decideSlot(&plan)
	s.noteChange(&plan, reason)
	plan.Delete = slices.Concat(s.beyond(Completed, s.KeepCompleted), s.beyond(Failed, s.KeepFailed))
	plan.Wake = s.wake(&plan, exact)
	return plan
}

// inSeconds has all moments in UTC and in whole seconds, as Kubernetes keeps them.
func (s Schedule) inSeconds() Schedule {
	for _, t := range []*time.Time{&s.Now, &s.Created, &s.Status.LastCheck, &s.Status.LastSlot, &s.Status.Next} {
		*t = t.UTC().Truncate(time.Second)
	}
	if s.Invalid != "" {
		s.Next = func(time.Time) time.Time { return time.Time{} }
	}
	return s
}

// decideSlot writes down which Backup to make, or why none; the reason is of the problem.
func (s Schedule) decideSlot(plan *SchedulePlan) core.Reason {
	st := &plan.Status
	due, following := s.due(st.LastSlot), s.Next(latest(s.Now, s.Created, st.LastSlot))
	switch {
	case s.Invalid != "":
		st.Next, st.Problem = s.immediate(st.LastSlot), s.Invalid
		return core.ReasonScheduleInvalid
	case following.IsZero():
		st.Next = s.immediate(st.LastSlot)
		st.Problem = "the schedule never comes, as a 30th of February: correct spec.schedule"
		return core.ReasonScheduleInvalid
	case s.Suspended:
	case s.Hindered != "":
		st.Next, st.Problem = s.stillPromised(st.LastSlot, due, following), s.Hindered
	case due.IsZero():
		st.Next, st.Problem = s.stillPromised(st.LastSlot, due, following), s.clockProblem(st)
	case s.HindersDue != "":
		st.Next, st.Problem = s.stillPromised(st.LastSlot, due, following), s.HindersDue
	case s.unfinished() != "":
		st.Next = s.stillPromised(st.LastSlot, due, following)
		st.Problem = fmt.Sprintf("Backup %s has not ended: the one that was due at %s is made after it. If it makes "+
			"no progress, check its status, and delete it", s.unfinished(), st.Next.Format(time.RFC3339))
	default:
		plan.Create = &Slot{due, s.backupName(due)}
		st.LastSlot, st.LastBackup = due, plan.Create.Name
		st.Next = following
	}
	return core.ReasonBackupHeldBack
}

// due is the newest slot that wants a Backup now, whatever number was missed; zero when
// none does. Only what was promised is made up for: slots that an edited schedule would
// have had before the edit are not.
func (s Schedule) due(last time.Time) time.Time {
	from := s.promised()
	if from.IsZero() || from.After(s.Now) {
		return time.Time{}
	}
	slot := s.newest(from)
	if slot.IsZero() && s.Immediate && from.Equal(s.Created) {
		slot = from
	}
	if !slot.After(last) {
		return time.Time{}
	}
	return slot
}

// promised is the first slot that may want a Backup still; zero when nothing was promised.
func (s Schedule) promised() time.Time {
	isFirst := s.Status.LastCheck.IsZero() && s.Status.LastSlot.IsZero() && s.Status.Next.IsZero()
	switch {
	case isFirst && s.Immediate:
		return s.Created
	case isFirst:
		return s.Next(s.Created)
	default:
		return s.Status.Next
	}
}

// stillPromised is what status.Next becomes while nothing is made: the slot that was
// promised if one is due, or the next one.
func (s Schedule) stillPromised(last, due, following time.Time) time.Time {
	if at := s.immediate(last); !at.IsZero() {
		return at
	}
	if due.IsZero() {
		return following
	}
	return s.promised()
}

// immediate is the moment of creation while the Backup that is wanted then is still to be
// made: a schedule that had to be corrected first does not lose it.
func (s Schedule) immediate(last time.Time) time.Time {
	if s.Immediate && !s.Suspended && s.promised().Equal(s.Created) && s.Created.After(last) {
		return s.Created
	}
	return time.Time{}
}

// newest is the last slot of those from a slot until now; zero when there is none. It
// halves the time between, so that a year of missed seconds costs no more than a day.
func (s Schedule) newest(from time.Time) time.Time {
	low, high := from.Add(-time.Second), s.Now
	comes := func(after time.Time) bool {
		next := s.Next(after)
		return !next.IsZero() && !next.After(s.Now)
	}
	if !comes(low) {
		return time.Time{}
	}
	for high.Sub(low) > time.Second {
		middle := low.Add((high.Sub(low) / 2).Truncate(time.Second))
		if comes(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return s.Next(low)
}

// newestMade is the newest slot that has its Backup: the status may not know it yet.
func (s Schedule) newestMade() (time.Time, string) {
	slot, name := s.Status.LastSlot, s.Status.LastBackup
	for _, b := range s.Backups {
		digits, isOurs := strings.CutPrefix(b.Name, s.Name+"-")
		at, err := time.Parse(slotFormat, digits)
		if isOurs && err == nil && at.After(slot) {
			slot, name = at, b.Name
		}
	}
	return slot, name
}

func (s Schedule) backupName(slot time.Time) string {
	return s.Name + "-" + slot.Format(slotFormat)
}

// unfinished is the name of a Backup that has not ended; "" when all have.
func (s Schedule) unfinished() string {
	var names []string
	for _, b := range s.Backups {
		if b.Outcome == Unfinished {
			names = append(names, b.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names[:min(1, len(names))], "")
}

func (s Schedule) clockProblem(st *ScheduleStatus) string {
	if st.LastSlot.Sub(s.Now) <= clockSlack {
		return ""
	}
	return fmt.Sprintf(
		"Backup %s is of %s, which is in the future: the clock of the operator's node was ahead, or is behind. No "+
			"Backup is made before then: correct the clock, or delete that Backup and clear status.lastScheduleTime",
		st.LastBackup, st.LastSlot.Format(time.RFC3339))
}

// noteChange tells what is new, and when it changed.
func (s Schedule) noteChange(plan *SchedulePlan, reason core.Reason) {
	before, st := s.Status, &plan.Status
	if before.Problem != st.Problem && st.Problem != "" {
		plan.Events = append(plan.Events, core.Event{Warning: true, Reason: reason, Message: st.Problem})
	}
	if plan.Create != nil {
		plan.Events = append(plan.Events, core.Event{Reason: core.ReasonBackupScheduled,
			Message: fmt.Sprintf("Backup %s is made for %s", plan.Create.Name, plan.Create.Time.Format(time.RFC3339))})
	}
	same := before.LastSlot.Equal(st.LastSlot) && before.LastBackup == st.LastBackup &&
		before.Next.Equal(st.Next) && before.Problem == st.Problem
	if !same || before.LastCheck.IsZero() {
		st.LastCheck = s.Now
	}
}

// beyond are the names of Backups of an outcome that are more than are kept, oldest last.
func (s Schedule) beyond(outcome Outcome, keep *int) []string {
	if keep == nil {
		return nil
	}
	var names []string
	ended := s.ended(outcome)
	for _, b := range ended[min(max(*keep, s.least(outcome)), len(ended)):] {
		names = append(names, b.Name)
	}
	return names
}

// ended are the Backups of some outcomes, the newest first.
func (s Schedule) ended(outcomes ...Outcome) []Made {
	all := slices.DeleteFunc(slices.Clone(s.Backups), func(b Made) bool {
		return b.Deleted || !slices.Contains(outcomes, b.Outcome)
	})
	slices.SortFunc(all, func(a, b Made) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(b.Name, a.Name))
	})
	return all
}

// least is how many of an outcome stay whatever the limit, for the Backups themselves are all that tells how the
// last ones ended: the newest that is Completed, without which there is no window and no age of the last backup, and
// a Failed one while none was Completed since.
func (s Schedule) least(outcome Outcome) int {
	if newest := s.ended(Completed, Failed); outcome == Failed && (len(newest) == 0 || newest[0].Outcome != Failed) {
		return 0
	}
	return 1
}

// wake is the time until the next slot, or until it is time to look anyway.
func (s Schedule) wake(plan *SchedulePlan, now time.Time) time.Duration {
	next := plan.Status.Next
	switch {
	case s.Invalid != "" || next.IsZero():
		return 0
	case s.Hindered != "", s.HindersDue != "" && plan.Status.Problem == s.HindersDue:
		return lookAgainHindered
	case !next.After(s.Now): // held back: the end of a Backup wakes it
		return lookAgain
	}
	return min(next.Sub(now), lookAgain)
}

// latest of some moments.
func latest(moments ...time.Time) time.Time {
	return slices.MaxFunc(moments, time.Time.Compare)
}
