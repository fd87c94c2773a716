package reason

import (
	"errors"
	"fmt"
	"testing"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// An error of which more than one package has a name has that of the package which stands
// first, whichever of them wrapped the other.
func TestTheNameOfAnErrorIsThatOfTheKindWhichStandsFirst(t *testing.T) {
	order := []error{seal.KeyWrong, archive.PartDamaged, backup.ManifestDamaged, store.AccessDenied}
	names := []core.Reason{"KeyWrong", "PartDamaged", "ManifestDamaged", "StoreAccessDenied"}
	for first, a := range order {
		if got := Of(fmt.Errorf("reading: %w", a), "Other"); got != names[first] {
			t.Errorf("%v is named %s, not %s", a, got, names[first])
		}
		for _, b := range order[first+1:] {
			for _, err := range []error{fmt.Errorf("%w (%w)", a, b), fmt.Errorf("%w (%w)", b, a), errors.Join(b, a)} {
				if got := Of(err, "Other"); got != names[first] {
					t.Errorf("%v is named %s, not %s", err, got, names[first])
				}
			}
		}
	}
}

func TestAnErrorWithoutANameHasTheOneThatIsGiven(t *testing.T) {
	for _, err := range []error{errors.New("something"), nil} {
		if got := Of(err, core.RetentionFailed); got != core.RetentionFailed {
			t.Errorf("%v is named %s", err, got)
		}
	}
}
