package operator

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"cnmsql.co/internal/core"
)

// isConflict reports whether nothing went wrong but that an object was another by then. Of several errors each
// has to say so.
func isConflict(err error) bool {
	switch e := err.(type) {
	case apierrors.APIStatus:
		return apierrors.IsConflict(err)
	case interface{ Unwrap() error }:
		return isConflict(e.Unwrap())
	case interface{ Unwrap() []error }:
		all := e.Unwrap()
		return len(all) > 0 && !slices.ContainsFunc(all, func(one error) bool { return !isConflict(one) })
	}
	return false
}

// stands notes an error that stays until something changes, if there is one.
func (f *failures) stands(err error) {
	switch {
	case err == nil:
	case isConflict(err):
		f.conflicts = append(f.conflicts, err)
	default:
		f.standing = append(f.standing, err)
	}
}

// repeat notes what failed before, and what the plan does not ask for again yet.
func (f *failures) repeat(plan core.Plan) {
	for _, why := range plan.Standing {
		f.standing = append(f.standing, errors.New(why))
	}
}

// conflict returns what has to be looked at again at once, nil if nothing. What is a conflict in look after look
// is none with somebody who happened to be quicker: after so many it is a failure as all others.
func (s *clusterState) conflict(f *failures) error {
	if len(f.conflicts) == 0 {
		s.conflicts = 0
		return nil
	}
	if s.conflicts++; s.conflicts > looks {
		f.changes, f.conflicts = append(f.changes, f.conflicts...), nil
		return nil
	}
	return errors.Join(f.conflicts...)
}
