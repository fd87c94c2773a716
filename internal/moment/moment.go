// Package moment reads a time that a person has written. It knows no flag's meaning: whether a time suits
// is for the command to say.
package moment

import (
	"fmt"
	"time"
)

// Parse reads a time with its zone, or how long ago it was, to the microsecond, as commits are dated. It is
// the zero time for "". Errors name the flag.
func Parse(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return now.Add(-ago).Truncate(time.Microsecond).UTC(), nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("--%s %s is no moment; write a time with its zone, as 2026-11-23T21:04:05Z or "+
			"2026-11-23T22:04:05+01:00, or how long ago, as 10m or 2h30m", flag, text)
	}
	return at.UTC(), nil
}
