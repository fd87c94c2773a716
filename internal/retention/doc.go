// Package retention removes from an object store what a cluster does not need to keep any
// more: base backups, parts of the archive, and what backups that were given up have left.
//
// What may go is decided by archive.Expire of internal/core; this package reads what that
// has to know, looks whether the backup that the window begins with is whole, and removes in
// an order that can be cut off anywhere and be started again. It also removes all that a cluster
// has, when that is asked for (RemoveArchive). It must not know Kubernetes, or who asked. Objects
// that nobody knows are counted and left alone.
package retention
