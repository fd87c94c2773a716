package agent

import "time"

// How often the manager of an instance looks, and how long it waits. The rules rest on these, so that the
// simulation of the rules keeps to the same ones.
const (
	// PollEvery is between two looks at mysqld.
	PollEvery = 500 * time.Millisecond
	// StartPollEvery is between two looks at one that starts, for StartPollFor. After that PollEvery has to do.
	StartPollEvery = 50 * time.Millisecond
	StartPollFor   = 30 * time.Second
	// StartRetry is when mysqld is tried again that could not be started, where its problem has no pause of its own.
	StartRetry = 5 * time.Second
	// LockRetry is between two attempts to lock a volume that another manager has.
	LockRetry = 100 * time.Millisecond

	// StatementLimit bounds the statements of an action together.
	StatementLimit = 15 * time.Second
	// OpenLimit bounds the statement that opens mysqld for writes.
	OpenLimit = 5 * time.Second
	// DropAcksLimit bounds the statements that end the wait for acknowledgements on a replica.
	DropAcksLimit = 5 * time.Second
	// AcksOrderLimit bounds an order to wait for another number of acknowledgements.
	AcksOrderLimit = 5 * time.Second
	// ReceiveStopLimit bounds stopping to receive, which is promised to the operator.
	ReceiveStopLimit = 5 * time.Second
	// AppliedLimit bounds one wait for what is received to be applied. It is decided again after each.
	AppliedLimit = time.Second

	// CallLimit bounds each call to the API server but the watch.
	CallLimit = 4 * time.Second
	// AskLimit bounds a question to another instance, or to the API server, by which a rule decides.
	AskLimit = 3 * time.Second
	// LeaseLook is between two looks at the primary's lease.
	LeaseLook = time.Second
	// PublishRetry is between two attempts to write this instance into the status as its primary.
	PublishRetry = time.Second
	// SourceEvery is between two questions to an external server that is followed, each of which SourceLimit bounds.
	SourceEvery = 5 * time.Second
	SourceLimit = 5 * time.Second
)
