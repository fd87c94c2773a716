// Package instance is PID 1 of an instance's Pod: it owns mysqld and carries out
// what core/agent decides. It gathers facts (the Cluster, the volume, the
// process, the server), asks for a decision, and acts; it tells everybody who
// watches what changed, at once.
//
// One worker carries out everything that changes a role, so that no two such
// things overlap; an order from the operator interrupts what the worker waits
// for. What takes long (initialising, cloning, stopping) goes on beside it. Each
// purpose has its own connection to mysqld.
//
// A concern is a component: a type that keeps what it knows, with a lock of its own
// where others read it, and names in an interface what it asks of its manager. The
// manager gathers facts and reports under its mutex, and takes a component's lock
// then; so a component holds no lock of its own when it asks its manager. Nobody changes the
// volume record under the mutex, for the volume may stall; to read what it remembers takes a
// moment. What the manager keeps itself changes in one: the life of mysqld, its status, the
// volume's data, and the view of the Cluster.
//
// An activity notes what came of it before it is over, and facts ask first which one goes on: so
// who finds that nothing goes on also finds every outcome.
//
// The package must not decide: a condition on an epoch, a promotion or a GTID
// set belongs into core/agent. Nor does it know who else is in the cluster, but
// by the Cluster's status.
package instance
