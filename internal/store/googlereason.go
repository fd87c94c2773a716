package store

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// googleError is what Google Cloud Storage says when it refuses a request.
type googleError struct {
	status  int
	reason  string // as notFound; "" when the answer has none
	message string
}

func (e *googleError) Error() string {
	return fmt.Sprintf("the store says %s: %s (HTTP %d)", orDash(e.reason), orDash(e.message), e.status)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// longest is as much of a refusal as is read, and longestSaid as is told.
const (
	longest     = 64 << 10
	longestSaid = 300
)

// maxSkew is how far two clocks may differ: Google refuses an identity that was made later
// than this from now, and says of it what it says of a wrong key.
const maxSkew = 5 * time.Minute

// googleRefusal reads an answer that refuses, and gives it its Reason.
func googleRefusal(res *http.Response, now time.Time) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, longest)) // a cut message still has a status
	var answer struct {
		Error struct {
			Message string                    `json:"message"`
			Errors  []struct{ Reason string } `json:"errors"`
		} `json:"error"`
	}
	said := &googleError{status: res.StatusCode}
	if json.Unmarshal(text, &answer) == nil {
		said.message = answer.Error.Message
		if len(answer.Error.Errors) > 0 {
			said.reason = answer.Error.Errors[0].Reason
		}
	} else {
		said.message = strings.TrimSpace(string(text))
	}
	if len(said.message) > longestSaid {
		said.message = strings.ToValidUTF8(said.message[:longestSaid], "")
	}
	why, known := googleReasons[said.reason]
	if !known {
		why = reasonOfStatus(said.status)
	}
	if why == CredentialsWrong {
		if date, err := http.ParseTime(res.Header.Get("Date")); err == nil && date.Sub(now).Abs() > maxSkew {
			why = ClockSkewed
		}
	}
	return because(why, said)
}

// googleReasons are what the JSON API says, by the Reason that it is. The status decides on
// others.
var googleReasons = map[string]*Reason{
	"conditionNotMet": Exists, "authError": CredentialsWrong, "required": CredentialsWrong, "expired": CredentialsWrong,
	"forbidden": AccessDenied, "insufficientPermissions": AccessDenied, "accountDisabled": AccessDenied,
	"retentionPolicyNotMet": AccessDenied, "objectUnderActiveHold": AccessDenied,
	"quotaExceeded": Full, "rateLimitExceeded": Unavailable, "userRateLimitExceeded": Unavailable,
	"backendError": Unavailable, "internalError": Unavailable,
}
