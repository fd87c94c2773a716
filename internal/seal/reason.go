package seal

import (
	"fmt"

	"cnmsql.co/internal/core"
)

// Reason is why something is not sealed or opened: a name, which can become a condition or
// an event, and a sentence that says what to do.
type Reason struct{ Name, Advice string }

func (r *Reason) Error() string { return r.Name + ": " + r.Advice }

// Refusals.
var (
	KeyInvalid = &Reason{string(core.KeyInvalid),
		"this is no identity of age, as age-keygen makes them: " +
			"put its whole output, the line AGE-SECRET-KEY-1... included, into the key of the Secret"}
	KeyMissing = &Reason{string(core.KeyMissing),
		"what is encrypted needs its key: name it in objectStore.encryption.identity, " +
			"and put the identity into that Secret"}
	KeyWrong = &Reason{string(core.KeyWrong),
		"it was encrypted to another key: add the identity of that recipient as a line of its own " +
			"to the Secret which objectStore.encryption.identity names"}
)

// refuse says what was wrong, and by which name.
func refuse(why *Reason, format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, why)...)
}
