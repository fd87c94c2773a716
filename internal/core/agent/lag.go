package agent

import (
	"time"

	"cnmsql.co/internal/core"
)

// Lags tells whether a server lags too much to be read from, 0 being no bound. Once it
// does, it has to come down to half of the bound: one that hovers around it would move
// endpoints to and fro.
func Lags(before bool, s *core.Server, limit time.Duration) bool {
	lag, follows := s.Lag()
	if !follows || limit <= 0 {
		return false
	}
	if before {
		limit /= 2
	}
	return lag > limit.Seconds()
}
