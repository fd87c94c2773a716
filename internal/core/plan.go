package core

import (
	"fmt"
	"time"
)

// Plan is what to do about an Observation: first the status is written, on the
// condition that the Cluster is still the one that was observed, then the
// effects are carried out in their order, but for those that wait for no
// status (see Ahead). All effects are idempotent.
type Plan struct {
	Status  Status
	Effects []Effect
	Events  []Event
	// Recheck is when to look again although nothing may have changed; 0 when
	// only a change can matter.
	Recheck time.Duration
	// Again asks to look again as soon as the effects are carried out.
	Again bool
	// Carried goes into this operator's next Observation of the cluster.
	Carried Carried
	// Standing is what could not be carried out when it was asked for last, and is not asked for again yet.
	// It is told as what fails now.
	Standing []string
	// Gap is what is known to be missing where a group goes on on a human's word, or would; "" when
	// nothing is.
	Gap string
}

// How long nobody needs to look at a cluster of which nothing is heard that matters.
const (
	// LookAgain is for one of which something changes without waking anybody: positions do.
	LookAgain = 5 * time.Second
	// LookAtRest is for one that is at rest, and of which no position changes.
	LookAtRest = 30 * time.Second
	// TryAgain is for one of which something could not be carried out.
	TryAgain = time.Second
	// PassesAtOnce is how often it is looked at, at most, before others have their turn, and TurnOver is
	// how long they have it.
	PassesAtOnce = 12
	TurnOver     = 100 * time.Millisecond
)

// LookIn is when to look again once the plan is carried out, or part of it failed.
func (p Plan) LookIn(failed bool) time.Duration {
	next := LookAgain
	if p.IsAtRest() {
		next = LookAtRest // whoever listens wakes earlier where a position changes
	}
	if failed {
		next = min(next, TryAgain)
	}
	if p.Recheck > 0 {
		next = min(next, p.Recheck)
	}
	return next
}

// GoesOn reports whether to look again at once. Where an order was refused, the same would be ordered.
func (p Plan) GoesOn(refused bool) bool { return p.Again && !refused }

// IsAtRest reports whether all is well and nothing is being done: whatever changes that is
// heard, or its time is in Recheck.
func (p Plan) IsAtRest() bool {
	s := p.Status
	return s.Phase == PhaseHealthy && s.Operation == nil && s.Blocked == nil && len(s.Notices) == 0 &&
		len(p.Effects) == 0 && !p.Again
}

// GrantsByKubernetesWord reports whether the plan promotes an instance and the proof is no
// manager's promise: then what Kubernetes says of the former primary is read past all
// caches, and the plan is made once more.
func (p Plan) GrantsByKubernetesWord(o Observation) bool {
	before, granted := o.Cluster.Status.Promotion, p.Status.Promotion
	byWord := granted != nil && (granted.Proof == ProofPodTerminated || granted.Proof == ProofLeaseExpired)
	return byWord && (before == nil || before.Epoch != granted.Epoch)
}

// Ahead are the effects that are carried out while the status is written, and the rest.
// Where writes are led needs nothing written down: whoever it is takes writes already, in a
// promotion that the status has, and clients wait for it.
func (p Plan) Ahead() (ahead, rest []Effect) {
	for _, e := range p.Effects {
		if _, routes := e.(RouteWrites); routes {
			ahead = append(ahead, e)
		} else {
			rest = append(rest, e)
		}
	}
	return ahead, rest
}

// Needs reports whether an effect is left out when another of its plan failed: a human's request to
// recreate data is taken away when the data is deleted, and stands otherwise.
func Needs(e, failed Effect) bool {
	clear, clears := e.(ClearReinit)
	reinit, reinits := failed.(ReinitInstance)
	return clears && reinits && clear.Instance == reinit.Instance
}

// Event is told to the user.
type Event struct {
	Warning bool
	Reason  Reason
	Message string
}

// Effect is one thing to do. Its String is for people and golden files.
type Effect interface {
	fmt.Stringer
	effect()
}

// CreateVolume makes an instance's volume claim.
type CreateVolume struct {
	Instance string
	Ordinal  int
}

// AdoptVolume makes this very claim, which outlived the Cluster of UID Of, the Cluster's.
type AdoptVolume struct{ Instance, UID, Of string }

// GrowVolume has this very claim of an instance ask for a size, as the spec has it, where it asks for less.
type GrowVolume struct{ Instance, VolumeUID, To string }

// CreatePod makes an instance's Pod. Awaited is put on it, the name by which the status
// awaits it; "" when it does not. Image is that of mysqld, where it is not the spec's.
type CreatePod struct {
	Instance string
	Ordinal  int
	Awaited  string
	Image    string
}

// DeletePod deletes this very Pod of an instance.
type DeletePod struct {
	Instance, UID string
	Reason        Reason
}

// Owned are the Pod and the volume claim that an instance had when something was decided
// about them, "" where it had none. What was made under its name since is not meant.
type Owned struct{ PodUID, VolumeUID string }

// DeleteInstance deletes this very Pod and volume of an instance, and all else it owns.
type DeleteInstance struct {
	Instance string
	Owned    Owned
	// KeepVolume tells whether the claim stays, and is no instance's from then on.
	KeepVolume bool
	Reason     Reason
}

// LabelPod sets the operator's own labels of a Pod.
type LabelPod struct {
	Instance, Role string
	Routable       bool
}

// ClearDemote removes a user's request to demote from a Pod: it was granted.
type ClearDemote struct{ Instance string }

// RouteWrites points the -rw Service at an instance.
type RouteWrites struct{ Instance string }

// Demote asks the manager for the promise that its mysqld accepts no write in
// any epoch below Epoch.
type Demote struct {
	Instance string
	Epoch    int64
}

// ReceivePromise asks the manager to stop receiving from its source until it follows
// a primary of Epoch or later; in a group, to leave it, and to stay out below Epoch.
type ReceivePromise struct {
	Instance string
	Epoch    int64
}

// Refresh asks an instance for a report now.
type Refresh struct{ Instance string }

// CloneFrom tells an instance without data to copy it from a donor.
type CloneFrom struct {
	Instance, Donor string
	Epoch           int64
}

// SeizeLease takes the lease record for an epoch that nobody holds yet, on the
// condition that it is still the version that was seen: its former holder can
// neither renew nor take it any more.
type SeizeLease struct {
	Epoch   int64
	Version string
}

// ResetLease leaves the lease record to nobody in the present epoch, on the condition that it is
// still the version that was seen and that this is still the epoch: whoever is promoted in it,
// or later, can take it.
type ResetLease struct {
	Epoch   int64
	Version string
}

// IsOf reports whether the present promotion is still the one that the record was set back for.
func (e ResetLease) IsOf(epoch int64) bool { return e.Epoch == epoch }

// ReinitInstance deletes this very Pod and volume of an instance, which are then made
// again under the same name, and cloned.
type ReinitInstance struct {
	Instance string
	Owned    Owned
}

// BindReinit writes down in which epoch and for which volume a human's request is first seen.
type BindReinit struct{ Request ReinitRequest }

// ClearReinit removes an instance from a human's request to recreate its data.
type ClearReinit struct{ Instance string }

// ClearOverride removes a human's override: it was carried out, or is of the past.
type ClearOverride struct{}

// RestartInPlace tells the manager of a crashed primary to start mysqld again:
// nobody else will be promoted.
type RestartInPlace struct {
	Instance string
	Epoch    int64
}

// ReplaceManager puts the operator's own binary in the place of an instance's manager,
// whose mysqld runs on.
type ReplaceManager struct{ Instance string }

// SetAcks sets the number of acknowledgements each commit on the primary waits for.
type SetAcks struct {
	Instance string
	Epoch    int64
	Acks     int
	// Order is its number: of two of one epoch, the higher one counts.
	Order int64
}

// AdoptTransactions has the primary commit empty transactions of these numbers.
type AdoptTransactions struct {
	Instance string
	Epoch    int64
	Set      string
}

func (AdoptTransactions) effect() {}

func (CreateVolume) effect()   {}
func (CreatePod) effect()      {}
func (AdoptVolume) effect()    {}
func (GrowVolume) effect()     {}
func (DeletePod) effect()      {}
func (DeleteInstance) effect() {}
func (LabelPod) effect()       {}
func (ClearDemote) effect()    {}
func (RouteWrites) effect()    {}
func (Demote) effect()         {}
func (ReceivePromise) effect() {}
func (Refresh) effect()        {}
func (CloneFrom) effect()      {}
func (RestartInPlace) effect() {}
func (ReplaceManager) effect() {}
func (SetAcks) effect()        {}
func (SeizeLease) effect()     {}
func (ResetLease) effect()     {}
func (ReinitInstance) effect() {}
func (BindReinit) effect()     {}
func (ClearReinit) effect()    {}
func (ClearOverride) effect()  {}

func (e CreatePod) String() string {
	if e.Image != "" {
		return "create pod " + e.Instance + " from " + e.Image
	}
	return "create pod " + e.Instance
}
func (e CreateVolume) String() string { return "create volume of " + e.Instance }
func (e AdoptVolume) String() string  { return "adopt volume of " + e.Instance }
func (e GrowVolume) String() string   { return "grow the volume of " + e.Instance + " to " + e.To }
func (e DeletePod) String() string    { return fmt.Sprintf("delete pod %s (%s)", e.Instance, e.Reason) }
func (e DeleteInstance) String() string {
	if e.KeepVolume {
		return fmt.Sprintf("remove %s, keep its volume (%s)", e.Instance, e.Reason)
	}
	return fmt.Sprintf("remove %s (%s)", e.Instance, e.Reason)
}
func (e LabelPod) String() string {
	return fmt.Sprintf("label %s role=%s routable=%t", e.Instance, e.Role, e.Routable)
}
func (e ClearDemote) String() string { return "remove the request to demote " + e.Instance }
func (e RouteWrites) String() string { return "route writes to " + e.Instance }
func (e Demote) String() string {
	return fmt.Sprintf("demote %s: no writes below epoch %d", e.Instance, e.Epoch)
}
func (e ReceivePromise) String() string {
	return fmt.Sprintf("ask %s to receive nothing below epoch %d", e.Instance, e.Epoch)
}
func (e Refresh) String() string { return "ask " + e.Instance + " for a report" }
func (e CloneFrom) String() string {
	return fmt.Sprintf("clone %s from %s", e.Instance, e.Donor)
}
func (e AdoptTransactions) String() string {
	return fmt.Sprintf("commit empty transactions %s on %s", e.Set, e.Instance)
}
func (e SeizeLease) String() string     { return fmt.Sprintf("take the Lease for epoch %d", e.Epoch) }
func (e ResetLease) String() string     { return fmt.Sprintf("set the Lease back to epoch %d", e.Epoch) }
func (e ReinitInstance) String() string { return "delete pod and volume of " + e.Instance }
func (e BindReinit) String() string {
	return fmt.Sprintf("note that the request to recreate %s is of epoch %d and of its present volume",
		e.Request.Instance, e.Request.Epoch)
}
func (e ClearReinit) String() string { return "remove the request to recreate " + e.Instance }
func (ClearOverride) String() string { return "remove the request that accepts a loss" }
func (e RestartInPlace) String() string {
	return fmt.Sprintf("restart mysqld of %s in place at epoch %d", e.Instance, e.Epoch)
}
func (e ReplaceManager) String() string { return "replace the manager of " + e.Instance }
func (e SetAcks) String() string {
	return fmt.Sprintf("set acknowledgements on %s to %d (order %d)", e.Instance, e.Acks, e.Order)
}
