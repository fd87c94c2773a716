package core

import "time"

// How long the operator waits for an instance's manager, and mysqld is waited for. The rules rest on these, so that
// the simulation of the rules keeps to the same ones.
const (
	// OrderLimit bounds an order to a manager.
	OrderLimit = 10 * time.Second
	// ReportLimit bounds the question for a report.
	ReportLimit = 2 * time.Second
	// ReconnectFirst is the pause before a manager is reached for again. It doubles with each attempt in vain, up to
	// ReconnectMost.
	ReconnectFirst = 50 * time.Millisecond
	ReconnectMost  = time.Second
	// PassRetryFirst is the pause after a look at a cluster that has failed. It doubles with each further one, up to
	// PassRetryMost.
	PassRetryFirst = 50 * time.Millisecond
	PassRetryMost  = 10 * time.Second
	// NetTimeout is after what silence of its source a replica connects anew, and ConnectRetry between two attempts to.
	NetTimeout   = 4 * time.Second
	ConnectRetry = time.Second
	// ReceiveStartLimit bounds the statements that have mysqld receive from a source. They are not given up sooner.
	ReceiveStartLimit = 10 * time.Second
)
