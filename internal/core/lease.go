package core

import "time"

// Times of the protocol by which a primary that nobody can reach is replaced. A
// primary renews its lease every LeaseRenewal, and may stay writable for LeaseGrace
// after it sent a renewal that succeeded, or while a majority of the cluster vouches
// for it, each at most VouchLife ago; then it stops within IsolationLimit. An observer
// waits longer than that: LeaseTTL, and VouchWithheld after the last vouch.
const (
	LeaseRenewal   = 5 * time.Second
	LeaseGrace     = 10 * time.Second
	LeaseTTL       = 15 * time.Second
	VouchEvery     = time.Second
	VouchLife      = 3 * time.Second
	IsolationLimit = 2 * time.Second
	// IsolationLook is how often a primary looks whether it has to isolate itself once its lease has run
	// out. Before that, and where no writes are taken, every IsolationRest shows that it would look.
	IsolationLook = 200 * time.Millisecond
	IsolationRest = 2 * time.Second
	// VouchWithheld leaves IsolationLimit for a busy manager to begin, and a second for
	// mysqld to die by SIGKILL.
	VouchWithheld = VouchLife + 2*IsolationLimit + time.Second
)

// Majority of a cluster of n instances.
func Majority(n int) int { return n/2 + 1 }
