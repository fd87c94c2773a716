package store

import (
	"context"
	"errors"

	"github.com/minio/minio-go/v7"
)

// reasoned gives the error of minio-go its Reason. What ended with the context has none.
func reasoned(ctx context.Context, err error) error {
	var known *Reason
	var answer minio.ErrorResponse
	if ctx.Err() == nil && !errors.As(err, &known) && errors.As(err, &answer) {
		return because(reasonOfAnswer(answer), &said{answer})
	}
	return onTheWay(ctx, err)
}

// said shows the code of an answer, which minio-go's own text leaves out.
type said struct{ answer minio.ErrorResponse }

func (s *said) Error() string { return "the store says " + s.answer.Code + ": " + s.answer.Error() }
func (s *said) Unwrap() error { return s.answer }

// codes are what stores say, by the Reason that it is. The status decides on others.
var codes = map[string]*Reason{
	"NoSuchKey": NotFound, "NoSuchBucket": NoBucket, "InvalidBucketName": NoBucket, "PreconditionFailed": Exists,
	"AccessDenied": AccessDenied, "AllAccessDisabled": AccessDenied, "AccountProblem": AccessDenied,
	"SignatureDoesNotMatch": CredentialsWrong, "InvalidAccessKeyId": CredentialsWrong, "ExpiredToken": CredentialsWrong,
	"ExpiredTokenException": CredentialsWrong, "InvalidToken": CredentialsWrong,
	"TokenRefreshRequired": CredentialsWrong,
	"InvalidSecurity":      CredentialsWrong, "InvalidClientTokenId": CredentialsWrong,
	"InvalidIdentityToken": CredentialsWrong,
	"RequestTimeTooSkewed": ClockSkewed, "RequestExpired": ClockSkewed,
	"QuotaExceeded": Full, "QuotaExceededException": Full, "InsufficientStorage": Full, "StorageFull": Full,
	"XMinioStorageFull": Full, "XMinioAdminBucketQuotaExceeded": Full, "InsufficientCapacity": Full,
	"NotImplemented": Unsupported, "APINotSupported": Unsupported,
	"AuthorizationHeaderMalformed": WrongRegion, "InvalidRegion": WrongRegion, "PermanentRedirect": WrongRegion,
	"IllegalLocationConstraintException": WrongRegion,
	"BadDigest":                          ConnectionLost, "XAmzContentSHA256Mismatch": ConnectionLost,
	"IncompleteBody": ConnectionLost,
	"SlowDown":       Unavailable, "SlowDownRead": Unavailable, "SlowDownWrite": Unavailable,
	"InternalError":      Unavailable,
	"ServiceUnavailable": Unavailable, "RequestTimeout": Unavailable, "Throttling": Unavailable,
	"ThrottlingException":  Unavailable,
	"RequestLimitExceeded": Unavailable, "RequestThrottled": Unavailable, "OperationAborted": Unavailable,
	"ConditionalRequestConflict": Unavailable,
}

func reasonOfAnswer(answer minio.ErrorResponse) *Reason {
	if why, ok := codes[answer.Code]; ok {
		return why
	}
	return reasonOfStatus(answer.StatusCode)
}
