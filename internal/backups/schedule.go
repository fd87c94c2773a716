package backups

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // images of the operator have no time zones

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/internal/core/backup"
)

// fields of a schedule.
const fields = cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor

// parseSchedule reads a schedule and its time zone; UTC when that is empty. What it returns
// is the first slot after a moment, in UTC, or zero when there is none. Slots of "@every" are
// counted from created. The error is for the user; in is where the fields schedule and
// timeZone are, as "spec".
func parseSchedule(in, text, zone string, created time.Time) (func(time.Time) time.Time, error) {
	location, err := parseZone(in, zone)
	if err != nil {
		return nil, err
	}
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		return nil, fmt.Errorf("%s.schedule %q begins with a time zone: write it into %s.timeZone", in, text, in)
	}
	if n := len(strings.Fields(text)); n == 5 && !strings.HasPrefix(text, "@") {
		return nil, fmt.Errorf("%s.schedule %q has five fields and needs six, the first being the second: put \"0 \" "+
			"before it: %q",
			in, text, "0 "+text)
	}
	parsed, err := cron.NewParser(fields).Parse(text)
	if err != nil {
		return nil,
			fmt.Errorf("%s.schedule %q: %w; write six fields: second, minute, hour, day of month, month, day of week",
				in, text, err)
	}
	switch parsed := parsed.(type) {
	case *cron.SpecSchedule:
		return fieldSlots(in, text, parsed, location)
	case cron.ConstantDelaySchedule:
		return everySlots(in, text, created)
	}
	return nil, fmt.Errorf("%s.schedule %q is not known", in, text)
}

func parseZone(in, zone string) (*time.Location, error) {
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil, fmt.Errorf("%s.timeZone %q is not known: write a name of the IANA database, as Europe/Berlin, "+
			"or leave it out for UTC", in, zone)
	}
	return location, nil
}

// fieldSlots are those of six fields. One that allows no value, as ",", would have the
// library search for seconds.
func fieldSlots(in, text string, parsed *cron.SpecSchedule,
	location *time.Location) (func(time.Time) time.Time, error) {
	for _, values := range []uint64{parsed.Second, parsed.Minute, parsed.Hour, parsed.Dom, parsed.Month, parsed.Dow} {
		if values == 0 {
			return nil, fmt.Errorf("%s.schedule %q has a field without a value: write a number, a range, a list or *",
				in, text)
		}
	}
	parsed.Location = location
	return func(t time.Time) time.Time { return nextOf(parsed, t).UTC() }, nil
}

// nextOf is the first slot after a moment. It is looked for from one change of clocks to the next,
// where the hour is the same distance from UTC: across a change of half an hour, or of two hours,
// the library steps over slots.
func nextOf(parsed *cron.SpecSchedule, t time.Time) time.Time {
	for at, after := t, t; ; {
		_, offset := at.In(parsed.Location).Zone()
		_, change := at.In(parsed.Location).ZoneBounds()
		between := *parsed
		between.Location = time.FixedZone("", offset)
		slot := between.Next(after)
		if slot.IsZero() || change.IsZero() || slot.Before(change) {
			return slot
		}
		at, after = change, change.Add(-time.Second) // a slot may be at the change
	}
}

// everySlots are counted from created, so that they are the same whenever they are asked for.
func everySlots(in, text string, created time.Time) (func(time.Time) time.Time, error) {
	period, err := time.ParseDuration(strings.TrimSpace(strings.TrimPrefix(text, "@every")))
	period = period.Truncate(time.Second)
	if err != nil || period < time.Second {
		return nil, fmt.Errorf("%s.schedule %q needs a duration of a second or more, as @every 6h", in, text)
	}
	created = created.UTC().Truncate(time.Second)
	return func(t time.Time) time.Time {
		if t.Before(created) {
			return created.Add(period)
		}
		return created.Add(t.Sub(created).Truncate(period) + period)
	}, nil
}

// SetSlots gives a schedule its slots, or says why it has none. Its arguments are those of
// parseSchedule.
func SetSlots(s *backup.Schedule, in, text, zone string, created time.Time) {
	next, err := parseSchedule(in, text, zone, created)
	if s.Next = next; err != nil {
		s.Invalid = err.Error()
	}
}

// Remembered is what the times in an object's status tell of its schedule.
func Remembered(lastCheck, lastSlot, next *metav1.Time) backup.ScheduleStatus {
	return backup.ScheduleStatus{LastCheck: TimeOf(lastCheck), LastSlot: TimeOf(lastSlot), Next: TimeOf(next)}
}

// TimeOf is a moment of an object, in UTC; zero when there is none.
func TimeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// Stamp is a moment for an object; nil for the zero one.
func Stamp(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}
