package agent

import (
	"fmt"

	"cnmsql.co/internal/core"
)

// Standing is what tells whether an instance obeys.
type Standing struct {
	// Seen is the highest epoch that it has seen.
	Seen int64
	// Locked tells whether it holds the lock on its volume; Foreign, whether the volume is not this
	// instance's; Adopted, whether the volume is known to be the present Cluster's.
	Locked, Foreign, Adopted bool
	Data                     core.DataState
	// Activity is what it is busy with, and Donor whom it copies from or is to.
	Activity Activity
	Donor    string
}

// Refuses tells why an order of an epoch is not obeyed; nil when it is. What is out of date
// is refused, and whatever needs the volume while another manager may be using it. What a
// volume without data remembers is forgotten once it is known whose it is, so that nothing
// is promised for it before.
func (s Standing) Refuses(epoch int64) *core.Problem {
	switch {
	case epoch < s.Seen:
		return &core.Problem{Reason: core.OrderStaleEpoch, Message: fmt.Sprintf("the order is of epoch %d; epoch %d "+
			"has been seen", epoch, s.Seen)}
	case !s.Locked:
		return &core.Problem{Reason: core.InstanceVolumeInUse, Message: "another manager still holds the volume; " +
			"nothing can be promised for it"}
	case s.Data == core.DataEmpty && !s.Adopted:
		return &core.Problem{Reason: core.InstanceClusterUnknown, Message: "the volume is empty, and not this " +
			"Cluster's yet: nothing can be promised for it"}
	case s.Foreign:
		return &core.Problem{Reason: core.InstanceForeignData, Message: "the volume is not this instance's"}
	}
	return nil
}

// RefusesCopy tells why data is not copied from a donor; nil when it is.
func (s Standing) RefusesCopy(donor string) *core.Problem {
	switch {
	case donor == "":
		return &core.Problem{Reason: core.OrderNoDonor, Message: "the order names no donor"}
	case s.Data == core.DataPopulated:
		return &core.Problem{Reason: core.OrderHasData,
			Message: "this instance has data, which an order never replaces"}
	case s.Activity != "" && s.Donor != donor:
		return &core.Problem{Reason: core.OrderBusy, Message: fmt.Sprintf("%s is under way", s.Activity)}
	}
	return nil
}

// MustStopFor reports whether writes have to be stopped for a promise to accept none below an epoch, by an
// instance that is writable in another, or in none, which is 0. One that is writable in an epoch that the
// promise does not speak of goes on. Data that is being made or copied takes no writes, and a server that is
// being stopped was made read-only before.
func MustStopFor(epoch, writable int64, activity Activity) bool {
	return writable < epoch && activity == ""
}

// RefusesAsPrimary tells why an order to the primary of an epoch is not obeyed by an instance that
// takes writes in another, or in none, which is 0; nil when it is.
func RefusesAsPrimary(writable, epoch int64) *core.Problem {
	if writable == epoch {
		return nil
	}
	return &core.Problem{Reason: core.OrderNotPrimary, Message: fmt.Sprintf(
		"this instance is writable in epoch %d, not in epoch %d", writable, epoch)}
}
