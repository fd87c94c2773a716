package core

import (
	"cmp"
	"fmt"
)

// Override is a human's decision to promote an instance although acknowledged
// writes may be lost, given about one epoch.
type Override struct {
	To    string
	Epoch int64
}

// String is the word as a human writes it, and tells where the epoch is missing.
func (o *Override) String() string {
	if o.Epoch < 0 {
		return cmp.Or(o.To, "nobody") + " without an epoch"
	}
	return fmt.Sprintf("%s@%d", o.To, o.Epoch)
}
