package backup

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// AfterStep reports whether a Backup is to be made, because all instances run a later series of MySQL
// than any backup is of; or when to look again, 0 if something else will tell. Until there is one, a
// restore to now begins on a server of the older series, to which what a newer one has logged is
// unknown. running are the versions that the instances run: while one is not known, or they are of
// several series, it is too early. Where there is no backup at all, none is made.
func AfterStep(running []string, now time.Time, all []Taken) (create bool, wake time.Duration) {
	if len(running) == 0 || slices.ContainsFunc(running, func(v string) bool {
		return v == "" || core.CompareSeries(v, running[0]) != 0
	}) {
		return false, 0
	}
	var since time.Time
	for _, b := range all {
		switch {
		case !b.Completed:
		case b.Version == "" || core.CompareSeries(b.Version, running[0]) >= 0:
			return false, 0
		default:
			since = latest(since, b.Created.Add(1)) // it is no attempt of after the step
		}
	}
	if since.IsZero() {
		return false, 0
	}
	return due(since, now, all, func(Taken) bool { return false })
}
