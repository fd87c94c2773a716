// Package backup decides about backups: which instance is backed up, when a schedule makes
// one, and which of them are kept in Kubernetes. It knows what is observed, and does nothing.
package backup
