package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// limits are how long a store is waited for.
type limits struct {
	silence time.Duration // of a store that owes an answer, until Stalled
	trying  time.Duration // since the first refusal, until no further try is made
	pause   time.Duration // after the first refusal; doubles with each, up to a sixth of trying
}

var defaults = limits{silence: 30 * time.Second, trying: 30 * time.Second, pause: 200 * time.Millisecond}

// again tries until it works, until the error is one that stays, or until limits.trying is
// over. A store that is silent is not tried again: that took long already.
func (l limits) again(ctx context.Context, try func() error) error {
	var since time.Time
	for pause := l.pause; ; pause = min(2*pause, l.trying/6) {
		err := try()
		if err == nil || !mayRetry(err) {
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		// By half at random, so that those whom the store refused at once do not come back at once.
		wait := pause/2 + rand.N(pause/2+1)
		if time.Since(since)+wait > l.trying {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w, after %w", ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}

// mayRetry tells of an error that may be another's a moment later. It leaves open whether
// the store did what it was asked for.
func mayRetry(err error) bool {
	return errors.Is(err, Unavailable) || errors.Is(err, Unreachable) || errors.Is(err, ConnectionLost)
}

// onTheWay gives an error that is no answer of a store its Reason. What ended with the
// context has none.
func onTheWay(ctx context.Context, err error) error {
	var known *Reason
	if err == nil || errors.As(err, &known) {
		return err
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return because(reasonOfNetwork(err), err)
}

func reasonOfNetwork(err error) *Reason {
	var certificate *tls.CertificateVerificationError
	var dial *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &certificate):
		return CertificateWrong
	case errors.As(err, &dns), errors.As(err, &dial) && dial.Op == "dial":
		return Unreachable
	case errors.Is(err, http.ErrSchemeMismatch):
		return Misconfigured
	}
	return ConnectionLost
}

// reasonOfStatus is for answers that tell no more than their HTTP status.
func reasonOfStatus(status int) *Reason {
	switch status {
	case http.StatusInsufficientStorage:
		return Full
	case http.StatusNotImplemented:
		return Unsupported
	case http.StatusPreconditionFailed:
		return Exists
	case http.StatusUnauthorized:
		return CredentialsWrong
	case http.StatusForbidden:
		return AccessDenied
	case http.StatusNotFound:
		return NotFound
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect:
		return WrongRegion
	case http.StatusRequestTimeout, http.StatusTooManyRequests, 499:
		return Unavailable
	default:
		if status >= 500 {
			return Unavailable
		}
		return Refused
	}
}
