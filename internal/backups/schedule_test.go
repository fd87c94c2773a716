package backups

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var scheduleDay = time.Date(2026, 11, 21, 10, 20, 30, 0, time.UTC)

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// slotsAfter are the first slots after a moment.
func slotsAfter(t *testing.T, schedule, zone, after string, n int) []string {
	t.Helper()
	next, err := parseSchedule("spec", schedule, zone, scheduleDay)
	if err != nil {
		t.Fatal(err)
	}
	at := moment(t, after)
	var slots []string
	for range n {
		at = next(at)
		slots = append(slots, at.Format(time.RFC3339))
	}
	return slots
}

func TestSchedulesAreRead(t *testing.T) {
	for _, c := range []struct {
		schedule, zone, after string
		want                  []string
	}{
		{"0 30 2 * * *", "", "2026-11-21T03:00:00Z", []string{"2026-11-22T02:30:00Z", "2026-11-23T02:30:00Z"}},
		{"0 30 2 * * *", "Europe/Berlin", "2026-11-21T03:00:00Z", []string{"2026-11-22T01:30:00Z"}},
		{"15,45 0 0 1 jan *", "", "2026-11-21T03:00:00Z", []string{"2027-01-01T00:00:15Z", "2027-01-01T00:00:45Z"}},
		{"0 0 1 * * mon-fri", "", "2026-11-20T03:00:00Z", []string{"2026-11-23T01:00:00Z"}},
		{" @daily ", "Asia/Tokyo", "2026-11-21T03:00:00Z", []string{"2026-11-21T15:00:00Z"}},
		{"@every 6h", "", "2026-11-21T10:20:30Z", []string{"2026-11-21T16:20:30Z", "2026-11-21T22:20:30Z"}},
		{"@every 6h", "", "2026-11-01T00:00:00Z", []string{"2026-11-21T16:20:30Z"}},
		{"@every 6h0m0.5s", "", "2026-11-21T16:20:29Z", []string{"2026-11-21T16:20:30Z"}},
	} {
		if got := slotsAfter(t, c.schedule, c.zone, c.after, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%q in %q: %v, not %v", c.schedule, c.zone, got, c.want)
		}
	}
}

// What docs/scheduled-backups.md says of the two jumps of a year.
func TestClocksThatJump(t *testing.T) {
	for _, c := range []struct{ schedule, after, want string }{
		// there is no 02:30 on the 29th
		{"0 30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"},
		{"0 30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z 2026-10-25T01:30:00Z"}, // 02:30 comes twice
		// every hour goes on
		{"0 0 * * * *", "2026-10-25T00:10:00Z", "2026-10-25T01:00:00Z 2026-10-25T02:00:00Z"},
		{"0 30 4 * * *", "2026-03-28T12:00:00Z", "2026-03-29T02:30:00Z 2026-03-30T02:30:00Z"}, // once a day
		{"0 30 4 * * *", "2026-10-24T12:00:00Z", "2026-10-25T03:30:00Z 2026-10-26T03:30:00Z"}, // once a day
		{"@every 24h", "2026-10-24T12:00:00Z", "2026-11-22T10:20:30Z 2026-11-23T10:20:30Z"},   // no zone at all
		// midnight is before the jump
		{"0 0 0 * * sun", "2026-10-24T12:00:00Z", "2026-10-24T22:00:00Z 2026-10-31T23:00:00Z"},
		{"0 0 0 29 feb *", "2026-10-24T12:00:00Z", "2028-02-28T23:00:00Z 2032-02-28T23:00:00Z"},    // years apart
		{"0 15,45 1-3 * * *", "2026-03-29T00:20:00Z", "2026-03-29T00:45:00Z 2026-03-29T01:15:00Z"}, // 01:45, 03:15
		{"0 59 23 31 12 *", "2026-12-31T22:59:00Z", "2027-12-31T22:59:00Z"},                        // after, not at
	} {
		want := strings.Fields(c.want)
		if got := slotsAfter(t, c.schedule, "Europe/Berlin", c.after, len(want)); !slices.Equal(got, want) {
			t.Errorf("%q after %s: %v, not %v", c.schedule, c.after, got, want)
		}
	}
}

// Halving the time for the newest slot needs slots that do not fall while the moment grows, and a
// slot that was told as the next one has to come: also where clocks jump by half an hour (Lord Howe)
// or by two hours (Troll).
func TestSlotsDoNotFall(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/Sao_Paulo", "Pacific/Chatham", "Africa/Cairo",
		"Australia/Lord_Howe", "Antarctica/Troll", "Africa/Casablanca"} {
		for _, schedule := range []string{"0 30 2 * * *", "0 */20 0-3 * * *", "@daily", "@weekly",
			"0 15 */6 * * *", "0 0 0 * * fri", "0 0 1 1 * *"} {
			next, err := parseSchedule("spec", schedule, zone, scheduleDay)
			if err != nil {
				t.Fatal(err)
			}
			before := time.Time{}
			for at := moment(t, "2018-01-01T00:00:00Z"); at.Year() < 2020; at = at.Add(13 * time.Minute) {
				slot := next(at)
				if slot.Before(before) || !slot.After(at) || at.Before(before) && !slot.Equal(before) {
					t.Fatalf("%q in %s: after %s comes %s, and before %s", schedule, zone, at, slot, before)
				}
				before = slot
			}
		}
	}
}

func TestWhatCannotBeReadSaysWhatToWrite(t *testing.T) {
	for _, c := range []struct{ schedule, zone, want string }{
		{"30 2 * * *", "", `put "0 " before it: "0 30 2 * * *"`},
		{"0 30 25 * * *", "", "six fields"},
		{"0 0 3 * * 7", "", "six fields"},
		{"now and then", "", "six fields"},
		{"0 0 3 * * * 2027", "", "six fields"},
		{"", "", "six fields"},
		{"@sometimes", "", "@sometimes"},
		{"@every", "", "@every"},
		{"@every 0s", "", "a second or more"},
		{"@every -6h", "", "a second or more"},
		{"@every 1d", "", "@every 1d"},
		{", 0 3 * * *", "", "without a value"},
		{"TZ=", "", "spec.timeZone"},
		{"CRON_TZ=Europe/Berlin 0 0 3 * * *", "", "spec.timeZone"},
		{"@daily", "Mars/Olympus", "IANA"},
		{"@daily", "Local", "IANA"},
		{"@daily", "../../etc/passwd", "IANA"},
	} {
		if _, err := parseSchedule("spec", c.schedule, c.zone, scheduleDay); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q in %q: %v", c.schedule, c.zone, err)
		}
	}
}

func TestAScheduleThatNeverComesHasNoSlot(t *testing.T) {
	next, err := parseSchedule("spec", "0 0 0 30 2 *", "", scheduleDay)
	if err != nil || !next(scheduleDay).IsZero() {
		t.Errorf("%v", err)
	}
}
