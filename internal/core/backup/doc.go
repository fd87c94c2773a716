// Package backup decides about backups: when a schedule makes one, and which of them are
// not kept any more. It works on plain facts, moments of time among them.
//
// It must not know Kubernetes, a clock, the language of schedules, or how a backup is
// taken.
package backup
