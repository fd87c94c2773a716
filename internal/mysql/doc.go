// Package mysql is the SQL that this project speaks, and the configuration it
// starts a server with: every statement that is ever sent to mysqld, every
// parameter that the operator owns and every difference between versions of the
// server stand here and nowhere else.
//
// Its methods are named after what the caller wants (BecomeReplicaOf,
// RefuseWrites, WaitForGTID), not after statements. Each takes a context
// and keeps its deadline; none retries, and none decides whether it should be
// done. The package must not know Kubernetes, epochs, leases or roles.
package mysql
