package store

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// refusal is what a store says when it refuses a request.
type refusal struct {
	status  int
	code    string // as notFound; "" when the answer has none
	message string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the store says %s: %s (HTTP %d)", orDash(r.code), orDash(r.message), r.status)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// longestSaid is as much of a message as is told.
const longestSaid = 300

// told gives a store's message in one line, and without its end if it is long.
func told(message string) string {
	if message = strings.Join(strings.Fields(message), " "); len(message) > longestSaid {
		return strings.ToValidUTF8(message[:longestSaid], "")
	}
	return message
}

// skewed reports whether the clock of who answered is further from ours than stores allow. What
// they say of a request that is too old or too new, they say of a wrong key, too.
func skewed(answer *http.Response, now time.Time, allowed time.Duration) bool {
	date, err := http.ParseTime(answer.Header.Get("Date"))
	return err == nil && date.Sub(now).Abs() > allowed
}
