package moment

import (
	"strings"
	"testing"
	"time"
)

func TestAMomentIsATimeOrHowLongAgo(t *testing.T) {
	now := time.Date(2026, 11, 23, 21, 4, 5, 123456789, time.FixedZone("", 3600))
	for text, want := range map[string]string{
		"":                          "0001-01-01T00:00:00Z",
		"10m":                       "2026-11-23T19:54:05.123456Z",
		"2h30m":                     "2026-11-23T17:34:05.123456Z",
		"2026-11-23T21:04:05.5Z":    "2026-11-23T21:04:05.5Z",
		"2026-11-23T22:04:05+01:00": "2026-11-23T21:04:05Z",
	} {
		at, err := Parse("since", text, now)
		if got := at.Format(time.RFC3339Nano); err != nil || got != want {
			t.Errorf("%q is %s, %v; wanted %s", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "2026-02-01 10:00:00", "-10m", "0s", "2h ago"} {
		at, err := Parse("since", text, now)
		if err == nil || !strings.HasPrefix(err.Error(), "--since "+text+" is no moment") {
			t.Errorf("%q is %s, %v", text, at, err)
		}
	}
}
