package store

import (
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// longest is as much of a refusal as is read.
const longest = 64 << 10

// maxSkew is how far two clocks may differ: Google refuses an identity that was made later
// than this from now.
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
	said := &refusal{status: res.StatusCode}
	if json.Unmarshal(text, &answer) == nil {
		said.message = told(answer.Error.Message)
		if len(answer.Error.Errors) > 0 {
			said.code = answer.Error.Errors[0].Reason
		}
	} else {
		said.message = told(string(text))
	}
	why, known := googleReasons[said.code]
	if !known {
		why = reasonOfStatus(said.status)
	}
	if why == CredentialsWrong && skewed(res, now, maxSkew) {
		why = ClockSkewed
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
