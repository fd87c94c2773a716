// Package backup decides about backups: which instance is backed up, when a schedule makes
// one, and which of them are kept in Kubernetes. It works on plain facts, moments of time
// among them, and does nothing.
//
// It must not know Kubernetes, a clock, the language of schedules, or how a backup is
// taken.
package backup
