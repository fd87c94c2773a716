package retention

import (
	"errors"
	"fmt"

	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/reason"
)

// namedError is an error that has one of the core's names.
type namedError struct {
	why core.Reason
	error
}

func because(why core.Reason, format string, args ...any) error {
	return &namedError{why, fmt.Errorf(format, args...)}
}

// reasonOf is the name of what went wrong: what this package says, else what the error has,
// or the other one.
func reasonOf(err error, otherwise core.Reason) core.Reason {
	if named, ok := errors.AsType[*namedError](err); ok {
		return named.why
	}
	return reason.Of(err, otherwise)
}

// adviceOf says what a decision to remove nothing means.
func adviceOf(why core.Reason) string {
	switch why {
	case facts.RetentionYoung:
		return "no backup is as old as the window, or none that was taken before the window can be used: all are kept"
	case facts.RetentionTimeUnknown:
		return "the store's listing does not have yet what was just written, and its clock is not known: " +
			"all are kept until the next backup"
	case facts.RetentionBranchMissing:
		return "the archive has parts of an epoch without its branch.json, so that nobody knows what survived: " +
			"put that object back; all are kept until then"
	}
	return ""
}
