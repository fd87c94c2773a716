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

	"github.com/minio/minio-go/v7"
)

// again tries until it works, until the error is one that stays, or until limits.trying is
// over. A store that is silent is not tried again: that took long already.
func (s *s3Store) again(ctx context.Context, try func() error) error {
	var since time.Time
	learned := !s.asks
	for pause := s.limits.pause; ; pause = min(2*pause, s.limits.trying/6) {
		err := try()
		if errors.Is(err, WrongRegion) && !learned { // minio-go does, from the refusal
			learned = true
			continue
		}
		if err == nil || !mayRetry(err) {
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		// By half at random, so that those whom the store refused at once do not come back at once.
		wait := pause/2 + rand.N(pause/2+1)
		if time.Since(since)+wait > s.limits.trying {
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

// reasoned gives the error of minio-go its Reason. What ended with the context has none.
func reasoned(ctx context.Context, err error) error {
	var known *Reason
	if err == nil || errors.As(err, &known) {
		return err
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	var answer minio.ErrorResponse
	if errors.As(err, &answer) {
		return because(reasonOfAnswer(answer), &said{answer})
	}
	return because(reasonOfNetwork(err), err)
}

// said shows the code of an answer, which minio-go's own text leaves out.
type said struct{ answer minio.ErrorResponse }

func (s *said) Error() string { return "the store says " + s.answer.Code + ": " + s.answer.Error() }
func (s *said) Unwrap() error { return s.answer }

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

// codes are what stores say, by the Reason that it is. The status decides on others.
var codes = map[string]*Reason{
	"NoSuchKey": NotFound, "NoSuchBucket": NoBucket, "InvalidBucketName": NoBucket, "PreconditionFailed": Exists,
	"AccessDenied": AccessDenied, "AllAccessDisabled": AccessDenied, "AccountProblem": AccessDenied,
	"SignatureDoesNotMatch": CredentialsWrong, "InvalidAccessKeyId": CredentialsWrong, "ExpiredToken": CredentialsWrong,
	"ExpiredTokenException": CredentialsWrong, "InvalidToken": CredentialsWrong, "TokenRefreshRequired": CredentialsWrong,
	"InvalidSecurity": CredentialsWrong, "InvalidClientTokenId": CredentialsWrong, "InvalidIdentityToken": CredentialsWrong,
	"RequestTimeTooSkewed": ClockSkewed, "RequestExpired": ClockSkewed,
	"QuotaExceeded": Full, "QuotaExceededException": Full, "InsufficientStorage": Full, "StorageFull": Full,
	"XMinioStorageFull": Full, "XMinioAdminBucketQuotaExceeded": Full, "InsufficientCapacity": Full,
	"NotImplemented": Unsupported, "APINotSupported": Unsupported,
	"AuthorizationHeaderMalformed": WrongRegion, "InvalidRegion": WrongRegion, "PermanentRedirect": WrongRegion,
	"IllegalLocationConstraintException": WrongRegion,
	"BadDigest":                          ConnectionLost, "XAmzContentSHA256Mismatch": ConnectionLost, "IncompleteBody": ConnectionLost,
	"SlowDown": Unavailable, "SlowDownRead": Unavailable, "SlowDownWrite": Unavailable, "InternalError": Unavailable,
	"ServiceUnavailable": Unavailable, "RequestTimeout": Unavailable, "Throttling": Unavailable, "ThrottlingException": Unavailable,
	"RequestLimitExceeded": Unavailable, "RequestThrottled": Unavailable, "OperationAborted": Unavailable,
	"ConditionalRequestConflict": Unavailable,
}

func reasonOfAnswer(answer minio.ErrorResponse) *Reason {
	if why, ok := codes[answer.Code]; ok {
		return why
	}
	switch status := answer.StatusCode; status {
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
