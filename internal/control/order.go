package control

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"cnmsql.co/internal/core"
)

// Order is a command to an instance, sent as its JSON. It has no result of its own: it is refused,
// or answered with the report after it. What came of it stands in every later report as well, for
// an operator that never heard the answer, or began since.
type Order interface {
	// Verb names the order on the wire, in the words of core's effects.
	Verb() Verb
	// OfEpoch returns the epoch that the order belongs to. A manager refuses an order of an
	// epoch lower than the highest it has seen.
	OfEpoch() int64
}

// Verb is the name of an order.
type Verb string

// Orders returns an order of each type: the registry by which a verb tells what a body is read into.
func Orders() []Order {
	return []Order{Demote{}, ReceivePromise{}, CloneFrom{}, RestartInPlace{}, SetAcks{}, AdoptTransactions{},
		SetGroupPrimary{}, ForceMembers{}, RebootGroup{}}
}

// readOrder reads the body of an order. One whose verb has no row is Unknown.
func readOrder(verb Verb, body *json.Decoder) (Order, error) {
	for _, row := range Orders() {
		if row.Verb() == verb {
			o := reflect.New(reflect.TypeOf(row))
			err := body.Decode(o.Interface())
			return o.Elem().Interface().(Order), err
		}
	}
	o := Unknown{Name: verb}
	err := body.Decode(&o)
	return o, err
}

// Demote has the instance promise to take no writes below the epoch, and take none.
type Demote struct {
	Epoch int64 `json:"epoch"`
}

// ReceivePromise has the instance promise to receive nothing below the epoch, and receive nothing.
type ReceivePromise struct {
	Epoch int64 `json:"epoch"`
}

// CloneFrom has an instance without data copy it.
type CloneFrom struct {
	Epoch int64 `json:"epoch"`
	// Donor is the host to clone from.
	Donor string `json:"donor,omitempty"`
}

// RestartInPlace has mysqld started again after a crash: nobody else is promoted.
type RestartInPlace struct {
	Epoch int64 `json:"epoch"`
}

// SetAcks has each commit on the primary wait for so many acknowledgements.
type SetAcks struct {
	Epoch int64 `json:"epoch"`
	Acks  int   `json:"acks,omitempty"`
	// Number of the order among those of its epoch; an earlier operator gives none.
	Number int64 `json:"number,omitempty"`
}

// AdoptTransactions has the primary commit empty transactions of these numbers.
type AdoptTransactions struct {
	Epoch        int64  `json:"epoch"`
	Transactions string `json:"transactions,omitempty"`
}

// SetGroupPrimary has a member ask its group for another primary.
type SetGroupPrimary struct {
	Epoch int64 `json:"epoch"`
	// Member is the UUID of the server that is to be primary.
	Member string `json:"member,omitempty"`
	// Within is how many seconds transactions in progress may hold that up; an earlier
	// operator sets no bound.
	Within int `json:"within,omitempty"`
}

// ForceMembers has a survivor go on with these members alone.
type ForceMembers struct {
	Epoch int64 `json:"epoch"`
	// Members are the instances that are left.
	Members []string `json:"members,omitempty"`
	// View is the group's view that they are left of; an earlier operator names none.
	View string `json:"view,omitempty"`
}

// RebootGroup has an instance reboot the group from its data.
type RebootGroup struct {
	Epoch int64 `json:"epoch"`
}

// Unknown is an order of a later operator, of which its epoch alone is understood.
type Unknown struct {
	Name  Verb  `json:"-"`
	Epoch int64 `json:"epoch"`
}

func (Demote) Verb() Verb            { return "demote" }
func (ReceivePromise) Verb() Verb    { return "freeze-io" }
func (CloneFrom) Verb() Verb         { return "clone-from" }
func (RestartInPlace) Verb() Verb    { return "restart-in-place" }
func (SetAcks) Verb() Verb           { return "set-acks" }
func (AdoptTransactions) Verb() Verb { return "adopt-transactions" }
func (SetGroupPrimary) Verb() Verb   { return "set-group-primary" }
func (ForceMembers) Verb() Verb      { return "force-members" }
func (RebootGroup) Verb() Verb       { return "reboot-group" }
func (o Unknown) Verb() Verb         { return o.Name }

func (o Demote) OfEpoch() int64            { return o.Epoch }
func (o ReceivePromise) OfEpoch() int64    { return o.Epoch }
func (o CloneFrom) OfEpoch() int64         { return o.Epoch }
func (o RestartInPlace) OfEpoch() int64    { return o.Epoch }
func (o SetAcks) OfEpoch() int64           { return o.Epoch }
func (o AdoptTransactions) OfEpoch() int64 { return o.Epoch }
func (o SetGroupPrimary) OfEpoch() int64   { return o.Epoch }
func (o ForceMembers) OfEpoch() int64      { return o.Epoch }
func (o RebootGroup) OfEpoch() int64       { return o.Epoch }
func (o Unknown) OfEpoch() int64           { return o.Epoch }

// OrderOf returns which instance an effect is an order to, and the order; "" when it is none. That
// of a core.Refresh is nil: a report alone is asked for. host is the name under which another
// instance is reached.
func OrderOf(e core.Effect, host func(instance string) string) (instance string, o Order) {
	switch e := e.(type) {
	case core.Demote:
		return e.Instance, Demote{Epoch: e.Epoch}
	case core.ReceivePromise:
		return e.Instance, ReceivePromise{Epoch: e.Epoch}
	case core.CloneFrom:
		return e.Instance, CloneFrom{Epoch: e.Epoch, Donor: host(e.Donor)}
	case core.RestartInPlace:
		return e.Instance, RestartInPlace{Epoch: e.Epoch}
	case core.SetAcks:
		return e.Instance, SetAcks{Epoch: e.Epoch, Acks: e.Acks, Number: e.Order}
	case core.AdoptTransactions:
		return e.Instance, AdoptTransactions{Epoch: e.Epoch, Transactions: e.Set}
	case core.SetGroupPrimary:
		return e.Instance, SetGroupPrimary{Epoch: e.Epoch, Member: e.UUID, Within: int(e.Within / time.Second)}
	case core.ForceMembers:
		return e.Instance, ForceMembers{Epoch: e.Epoch, Members: strings.Split(e.Members, ","), View: e.View}
	case core.RebootGroup:
		return e.Instance, RebootGroup{Epoch: e.Epoch}
	case core.Refresh:
		return e.Instance, nil
	default:
		return "", nil
	}
}
