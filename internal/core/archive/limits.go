package archive

import "time"

// How often an instance that archives looks, and when it tries again. The simulation keeps to the same ones.
const (
	// LookEvery is between two looks whether this instance archives, and how far it is.
	LookEvery = time.Second
	// BeginRetry is when archiving that has ended with an error is begun again.
	BeginRetry = 5 * time.Second
	// PurgeEvery is between two looks at which binary logs may go.
	PurgeEvery = 30 * time.Second
	// StoreRetryFirst is the pause after a question that the store did not answer. It doubles with each further one, up
	// to StoreRetryMost.
	StoreRetryFirst = 100 * time.Millisecond
	StoreRetryMost  = 30 * time.Second
)
