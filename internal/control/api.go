package control

import (
	"context"
	"io"

	"cnmsql.co/internal/core"
)

// Snapshot is one message of a status stream.
type Snapshot struct {
	// Taken is when the oldest fact of the report was read, Made when the
	// snapshot was put together, and Asked when the manager was asked for it
	// (for a stream: when the stream was asked for), all in nanoseconds since
	// the manager started, by its monotonic clock. An observer that knows when
	// it asked knows by them how old the report can be at most; no two machines'
	// clocks are compared.
	Taken int64 `json:"taken"`
	Made  int64 `json:"made"`
	Asked int64 `json:"asked"`
	// Report is the manager's word.
	Report core.Report `json:"report"`
	// Repeats: the report is the very one of the message before it in the same stream.
	// Whoever listens sets it.
	Repeats bool `json:"-"`
}

// Moments returns when the report was taken, made and asked for.
func (s Snapshot) Moments() core.Moments {
	return core.Moments{Taken: s.Taken, Made: s.Made, Asked: s.Asked}
}

// Paths of the API.
const (
	// PathStatus is GET. ?watch=true streams; with &brief=true a message whose report is that
	// of the message before it may leave it out, and say same. A manager that knows nothing of
	// that sends every report.
	PathStatus = "/v1/status"
	PathOrder  = "/v1/order/" // POST an Order + its Verb
	PathVouch  = "/v1/vouch"  // GET ?instance=&epoch=
	// PathManager takes a binary that is to go on in the manager's place: POST ?digest=
	PathManager = "/v1/manager"
	// PathCheck has tables checked: POST a CheckOrder begins, GET asks how far it is.
	PathCheck = "/v1/check"
)

// Refusal is the body of an answer other than 200.
type Refusal struct {
	Reason  core.Reason `json:"reason"`
	Message string      `json:"message"`
}

// Error makes a Refusal an error.
func (r *Refusal) Error() string { return string(r.Reason) + ": " + r.Message }

// Instance is what an instance manager does for its callers.
type Instance interface {
	// Snapshot takes a report now: mysqld is asked, within the context's deadline.
	Snapshot(ctx context.Context) Snapshot
	// Watch calls send with a snapshot at once, with one more at every change
	// that matters and at least every second, until ctx ends or send fails.
	Watch(ctx context.Context, send func(Snapshot) error) error
	// Vouch tells a primary whether this instance still counts on it in an
	// epoch; a *Refusal says why not.
	Vouch(ctx context.Context, instance string, epoch int64) error
	// ReplaceManager takes a binary, whose SHA-256 is digest, and returns when it is
	// about to go on in the manager's place. A *Refusal says why it does not.
	ReplaceManager(ctx context.Context, digest string, binary io.Reader) error
	// StartCheck begins to check tables, and returns when it has begun. The same order once
	// more changes nothing. A *Refusal says why it does not.
	StartCheck(o CheckOrder) error
	// CheckReport is how far the last check is.
	CheckReport() CheckReport
	// Order carries out an order and returns when it is done, or, for
	// CloneFrom and RestartInPlace, when it has begun. A *Refusal is the
	// manager's no; it is not a failure.
	Order(ctx context.Context, o Order) error
}
