package store

import (
	"context"
	"encoding/xml"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
)

// azureReasoned gives an error of Microsoft's client its Reason. What ended with the context
// has none.
func azureReasoned(ctx context.Context, err error) error {
	var known *Reason
	var answer *azcore.ResponseError
	if ctx.Err() == nil && !errors.As(err, &known) && errors.As(err, &answer) {
		return azureRefusal(answer, time.Now())
	}
	return onTheWay(ctx, err)
}

// azureSkew is how far two clocks may differ: Azure refuses a signature that is older.
const azureSkew = 15 * time.Minute

func azureRefusal(answer *azcore.ResponseError, now time.Time) error {
	said := &refusal{status: answer.StatusCode, code: answer.ErrorCode, message: azureMessage(answer.RawResponse)}
	why := azureReason(bloberror.Code(answer.ErrorCode), answer.StatusCode)
	if why == CredentialsWrong && skewed(answer.RawResponse, now, azureSkew) {
		why = ClockSkewed
	}
	return because(why, said)
}

// azureMessage is what the answer says in words. Of its details only the times of a SAS token
// are told: others show what was signed.
func azureMessage(answer *http.Response) string {
	text, err := runtime.Payload(answer)
	if err != nil {
		return ""
	}
	var body struct {
		Message string
		Detail  string `xml:"AuthenticationErrorDetail"`
	}
	if xml.Unmarshal(text, &body) != nil {
		return told(string(text))
	}
	if strings.Contains(body.Detail, "time frame") {
		return told(body.Detail)
	}
	return told(body.Message)
}

// azureReasons are what Azure says, by the Reason that it is. The status decides on others.
var azureReasons = map[bloberror.Code]*Reason{
	bloberror.BlobNotFound: NotFound, bloberror.ContainerNotFound: NoBucket, bloberror.ContainerDisabled: NoBucket,
	bloberror.ContainerBeingDeleted: NoBucket,
	bloberror.BlobAlreadyExists:     Exists, bloberror.ConditionNotMet: Exists, bloberror.TargetConditionNotMet: Exists,
	bloberror.AuthenticationFailed: CredentialsWrong, bloberror.InvalidAuthenticationInfo: CredentialsWrong,
	bloberror.NoAuthenticationInformation: CredentialsWrong,
	bloberror.BlobImmutableDueToPolicy:    AccessDenied, "BlobImmutableDueToLegalHold": AccessDenied,
	bloberror.LeaseIDMissing: AccessDenied, bloberror.SnapshotsPresent: AccessDenied,
	bloberror.MD5Mismatch: ConnectionLost, bloberror.OperationTimedOut: Unavailable, bloberror.ServerBusy: Unavailable,
	bloberror.InternalError: Unavailable, bloberror.AccountBeingCreated: Unavailable,
	bloberror.UnsupportedHeader: Unsupported, bloberror.UnsupportedHTTPVerb: Unsupported,
	bloberror.UnsupportedQueryParameter: Unsupported, bloberror.ConditionHeadersNotSupported: Unsupported,
	bloberror.FeatureVersionMismatch: Unsupported,
}

func azureReason(code bloberror.Code, status int) *Reason {
	if why, ok := azureReasons[code]; ok {
		return why
	}
	switch status {
	case http.StatusNotFound: // by whom else: of an object that is not there, Azure says so
		return Misconfigured
	case http.StatusPreconditionFailed: // of a condition that nobody set here
		return Refused
	}
	return reasonOfStatus(status)
}
