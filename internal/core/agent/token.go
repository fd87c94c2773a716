package agent

import "time"

const (
	// tokenPatience is for how long the API server has to refuse a token until that is told: one that has just
	// ended is replaced by the kubelet, and an API server that begins may not know any yet.
	tokenPatience = 30 * time.Second
	// tokenGap is how far two refusals may be apart that are one. What is refused is asked again every second.
	tokenGap = 10 * time.Second
)

// Token is what the API server says of the token with which a manager asks it.
type Token struct {
	// first and last are of refusals in a row; zero where the last answer was none.
	first, last time.Time
}

// Answered notes an answer of the API server: whether it refused the token, or took it, whatever it said
// besides. What has no answer says nothing about the token.
func (t *Token) Answered(refused bool, at time.Time) {
	switch {
	case !refused:
		*t = Token{}
		return
	case t.first.IsZero(), !t.IsRefused() && at.Sub(t.last) > tokenGap:
		t.first = at
	}
	t.last = at
}

// IsRefused reports whether the token has been refused for a while, and was not taken since.
func (t Token) IsRefused() bool { return t.last.Sub(t.first) >= tokenPatience }
