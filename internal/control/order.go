package control

import (
	"strings"
	"time"

	"cnmsql.co/internal/core"
)

// What an effect asks of an instance and is no order to it: a report, and to give way to
// another binary.
const (
	VerbRefresh Verb = ""
	VerbReplace Verb = "replace"
)

// OrderOf is what an effect asks of an instance, and of which; false when it asks none for
// anything. host is the name under which another instance is reached.
func OrderOf(e core.Effect, host func(instance string) string) (verb Verb, instance string, o Order, is bool) {
	switch e := e.(type) {
	case core.Demote:
		return VerbDemote, e.Instance, Order{Epoch: e.Epoch}, true
	case core.ReceivePromise:
		return VerbReceivePromise, e.Instance, Order{Epoch: e.Epoch}, true
	case core.CloneFrom:
		return VerbCloneFrom, e.Instance, Order{Epoch: e.Epoch, Donor: host(e.Donor)}, true
	case core.RestartInPlace:
		return VerbRestartInPlace, e.Instance, Order{Epoch: e.Epoch}, true
	case core.SetAcks:
		return VerbSetAcks, e.Instance, Order{Epoch: e.Epoch, Acks: e.Acks, Number: e.Order}, true
	case core.AdoptTransactions:
		return VerbAdopt, e.Instance, Order{Epoch: e.Epoch, Transactions: e.Set}, true
	case core.SetGroupPrimary:
		o := Order{Epoch: e.Epoch, Member: e.UUID, Within: int(e.Within / time.Second)}
		return VerbSetGroupPrimary, e.Instance, o, true
	case core.ForceMembers:
		return VerbForceMembers, e.Instance, Order{Epoch: e.Epoch, Members: strings.Split(e.Members,
			","), View: e.View}, true
	case core.RebootGroup:
		return VerbRebootGroup, e.Instance, Order{Epoch: e.Epoch}, true
	case core.Refresh:
		return VerbRefresh, e.Instance, Order{}, true
	case core.ReplaceManager:
		return VerbReplace, e.Instance, Order{}, true
	default:
		return "", "", Order{}, false
	}
}
