package core

import "time"

// Volume is what Kubernetes says of an instance's volume claim.
type Volume struct {
	Exists   bool
	UID      string
	Deleting bool
	Bound    bool
	// Asks is how many bytes the claim asks for.
	Asks int64
	// Refused is the last growth that Kubernetes refused, while nothing that the operator sees has changed since;
	// nil when there is none.
	Refused *RefusedGrowth
	// Problem is why it is not bound, when Kubernetes says so.
	Problem *Problem
}

// RefusedGrowth is when Kubernetes refused to have a claim ask for more, and why, in its own words.
type RefusedGrowth struct {
	At  time.Time
	Why string
}

// Size is how large a volume is to be: in bytes, and in the words of the spec.
type Size struct {
	Bytes int64
	Text  string
}

// FormerVolume is a volume claim that outlived its Cluster, which had the UID Of. Removed:
// its instance had been removed before.
type FormerVolume struct {
	Instance, UID, Of string
	Removed           bool
}
