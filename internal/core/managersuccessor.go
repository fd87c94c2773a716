package core

import "time"

// Successor is what came of sending a manager the binary that is to go on in its place; zero when
// none was sent to that Pod.
type Successor struct {
	// Sent is when it was sent last, as far as that is over.
	Sent time.Time
	// Failed is how often it was not taken, one time after the other, and Since when the first of these
	// was begun. Why is what was said the last time.
	Failed int
	Since  time.Time
	Why    string
	// Busy tells whether the manager could not hand over what it has in hand. That is no failure,
	// and the count begins again where one follows the other.
	Busy bool
}

// Refused notes that the manager did not take what was begun to be sent to it, and why.
func (s *Successor) Refused(why string, busy bool, begun time.Time) {
	if s.Failed == 0 || busy != s.Busy {
		s.Failed, s.Since = 0, begun
	}
	s.Why, s.Busy = why, busy
	s.Failed++
}

// Binary is a build of the manager, which is one with the operator.
type Binary struct {
	// Digest is the SHA-256 of the file, in hexadecimal digits.
	Digest string `json:"digest"`
	// Platform is GOOS/GOARCH.
	Platform string `json:"platform"`
}

// RefusedBinary is a binary that is not tried again, and why.
type RefusedBinary struct {
	Digest string `json:"digest"`
	Why    string `json:"why"`
}
