// Package verify has the controller that tries the backups of a Cluster: it makes the
// throw-away Cluster into which the newest one is restored, has the instance there check the
// tables, and writes down what came of it. What is decided is in internal/core/verify; the
// restore is every Cluster's that begins with a backup.
package verify
