// Package verify decides about trying backups: when a verification begins, what its next step
// is, and what came of it. The backup is restored into a throw-away Cluster, here called the
// copy; the server checks its tables there; then the copy is deleted.
//
// It works on plain facts, moments of time among them, and does nothing. It must not know
// Kubernetes, a clock, or how tables are checked.
package verify
