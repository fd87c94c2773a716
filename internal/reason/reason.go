// Package reason is the one table from errors to the names that conditions, events and
// metrics carry. It knows the packages whose errors have a name; it must not know who asks,
// or what is done about an error.
package reason

import (
	"errors"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// kinds are the errors that have a name, in the order in which they are looked for. An error
// may wrap more than one: what was wrong with the key says more than what could therefore
// not be read, and that says more than what the store answered.
var kinds = []func(error) core.Reason{
	nameOf(func(r *seal.Reason) string { return r.Name }),
	nameOf(func(r *archive.Reason) string { return r.Name }),
	nameOf(func(r *backup.Reason) string { return r.Name }),
	nameOf(func(r *store.Reason) string { return r.Name }),
}

// Of is the name of what went wrong, and otherwise that of an error which has none.
func Of(err error, otherwise core.Reason) core.Reason {
	for _, named := range kinds {
		if name := named(err); name != "" {
			return name
		}
	}
	return otherwise
}

func nameOf[T error](name func(T) string) func(error) core.Reason {
	return func(err error) core.Reason {
		if why, ok := errors.AsType[T](err); ok {
			return core.Reason(name(why))
		}
		return ""
	}
}
