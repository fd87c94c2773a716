package core

import (
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/gtid"
)

// Observation is all that is known of one cluster at one moment.
type Observation struct {
	Now     time.Time
	Cluster Cluster
	// Carried is that of the plan that this operator made of the cluster last; zero
	// when it has made none.
	Carried Carried
	// Instances in the order of their ordinals: every one that has, had or
	// should have a Pod or a volume.
	Instances []Instance
}

// Carried is what one run of the operator carries from one decision to the next, by
// its own clock. It is kept nowhere else: clocks of two operators are not compared,
// and one that starts again begins with none.
type Carried struct {
	// Asking is since when the primary's manager is asked for its promise for the epoch.
	Asking Since
	// Recovering is since when the primary recovers in the epoch.
	Recovering Since
	// Proven is since when a successor is elected for the epoch, and this operator has known the
	// proof without a break.
	Proven Since
	// Regressed is since when instances have seen the epoch, and the status has not got there.
	Regressed Since
	// Starving is since when commits wait for ever for instances that the primary would
	// have to give their data.
	Starving Since
	// CatchUp is how the target of a switchover comes on while the old primary writes.
	CatchUp CatchUp
	// Progress is what a promoted instance has got done.
	Progress Progress
	// Skipped tells since when a replica, by its name, has lacked what it is not sent.
	Skipped map[string]time.Time
	// Unknown is since when too few members of a group can be asked for a verdict, or
	// nobody about a primary.
	Unknown Since
	// Held is what a group's primary had executed when there last was one, and what
	// anybody was seen or recorded to have executed since.
	Held gtid.Set
	// Dissolved is the view for which a human's word to have a group go on was taken, and of which those who
	// were still online were told to leave for it.
	Dissolved string
	// Replacing are the Pods, by their UIDs, whose managers are being replaced in place.
	Replacing []string
}

// CatchUp is how the target of a switchover comes on.
type CatchUp struct {
	// Target of the switchover that began at Began.
	Target string
	Began  time.Time
	// Source is what the old primary had when this was begun.
	Source gtid.Set
	// Applied is how much the target had executed At.
	Applied uint64
	At      time.Time
	// Rate is how many transactions a second it has applied of late, once that is Known.
	Rate  float64
	Known bool
}

// Progress is what an instance had got done in an epoch when it was last seen to get on.
type Progress struct {
	Epoch int64
	At    time.Time
	// Seen the promotion; Held and Executed so many transactions.
	Seen           bool
	Held, Executed uint64
}

// Since is from when on something has been so in one epoch, in every decision; zero when
// it is not.
type Since struct {
	Epoch int64
	At    time.Time
}

// Or goes on with what was so in the decision before; if that was another epoch or
// nothing, it begins now.
func (s Since) Or(epoch int64, now time.Time) Since {
	if s.Epoch == epoch {
		return s
	}
	return Since{epoch, now}
}

// Instance returns the named instance, or nil.
func (o *Observation) Instance(name string) *Instance {
	for i := range o.Instances {
		if o.Instances[i].Name == name {
			return &o.Instances[i]
		}
	}
	return nil
}

// Cluster is what the user wants and what was decided before.
type Cluster struct {
	Name       string
	Generation int64
	Deleting   bool
	// Problem is set when something outside the cluster hinders it (a Secret
	// that is missing, a refused object): nothing new is begun meanwhile, and instances
	// are only given back what they have lost.
	Problem *Problem
	// Asides are what is wrong outside the cluster, or will be, and hinders nothing: it is told.
	Asides []Problem
	// Failed is what could not be carried out when it was last tried, in
	// Kubernetes' own words; "" when all could.
	Failed string

	Wanted int
	// VolumeSize is how large volumes are to be; zero where that is not known, and none grows.
	VolumeSize Size
	// Topology is what the cluster was declared with.
	Topology Topology
	// FirstData is where the first data come from.
	FirstData DataOrigin
	// Follows names the external server that the user wishes the primary to follow; "" for none.
	Follows string
	// SourceAddress is where the user says that the external server is reached of which the first data are; "" where
	// they are of none, or it is named no more.
	SourceAddress   string
	Durability      Durability
	FailoverDelay   time.Duration
	SwitchoverLimit time.Duration
	// SwitchoverPause is how long a planned switchover may stop writes; 0 is no bound.
	SwitchoverPause time.Duration

	// PrimaryLease tells whether a primary must hold the lease; Lease is what was seen of it.
	PrimaryLease bool
	Lease        Fact[Lease]
	// Policy bounds failovers.
	Policy FailoverPolicy
	// Override is a human's word that data may be lost; nil without one.
	Override *Override
	// ForeignPods and ForeignVolumes carry an instance's labels and are not this Cluster's.
	ForeignPods, ForeignVolumes []string
	// KeepVolumes tells whether the volume claim of an instance that is removed is kept.
	// KeptVolumes were: their names are no new instance's.
	KeepVolumes bool
	KeptVolumes []string
	// FormerVolumes have the data of deleted Clusters of this name; AdoptFrom is the UID
	// of the one with whose volumes a human wants to go on.
	FormerVolumes []FormerVolume
	AdoptFrom     string
	// Reinit are a human's requests to recreate data, one an instance.
	Reinit []ReinitRequest

	// Group is the wish for a group; nil in a topology without one.
	Group *Group
	// Manager is the binary that managers are replaced by in place; zero when they are not.
	Manager Binary

	Status Status
	// Services are those that were seen.
	Services []Service
	// Routed is the instance that the -rw Service selects.
	Routed Fact[string]
}

// Lease is the primary's lease as the operator has seen it. Its clock is the
// operator's own: no renewal time is read from the record.
type Lease struct {
	// Holder is "" when nobody holds it, or when there is no record.
	Holder string
	Epoch  int64
	// Version of the record, "" when there is none.
	Version string
	// UnchangedSince is when the record was first seen as it is.
	UnchangedSince time.Time
}

// FailoverPolicy bounds failovers; a zero value of a field is no bound.
type FailoverPolicy struct {
	// MaxTransactionsBehind is how many transactions of those that the failed
	// primary was last known to have the new one may lack.
	MaxTransactionsBehind *uint64
	MaxReplicationLag     time.Duration
	// Preferred instances, best first, win among equals, and are failed back to.
	Preferred              []string
	MinTimeBetweenFailover time.Duration
	// StabilityWindow is how long a primary must have been writable before it is
	// exchanged for a preferred one.
	StabilityWindow time.Duration
}

// ReinitRequest is a human's request to recreate the data of an instance. It counts in the epoch and
// for the volume claim that it was made for, and for no other: what is thrown away is what the human
// knew of.
type ReinitRequest struct {
	Instance string
	// Epoch is -1 when what was written cannot be read.
	Epoch int64
	// Volume is the UID of the claim; "" while the request is bound to nothing.
	Volume string
	// Diverged tells whether the human was told that the instance holds what the others lack.
	Diverged bool
	// Unheard tells whether nobody could ask the instance what it holds when the request was made.
	Unheard bool
}

// ReinitNames are the instances of requests.
func ReinitNames(all []ReinitRequest) []string {
	var out []string
	for _, r := range all {
		out = append(out, r.Instance)
	}
	return out
}

// WithoutReinit are the requests for other instances.
func WithoutReinit(all []ReinitRequest, instance string) []ReinitRequest {
	return slices.DeleteFunc(slices.Clone(all), func(r ReinitRequest) bool { return r.Instance == instance })
}

// BoundReinit are the requests with one that is bound in the place of that for the same instance.
func BoundReinit(all []ReinitRequest, bound ReinitRequest) []ReinitRequest {
	all = slices.Clone(all)
	for i := range all {
		if all[i].Instance == bound.Instance {
			all[i] = bound
		}
	}
	return all
}

// Marked is the request with what is true of the instance as it is bound.
func (r ReinitRequest) Marked(diverged, unheard bool) ReinitRequest {
	r.Diverged, r.Unheard = diverged, unheard
	return r
}

// IsBound reports whether the request is for one epoch and one volume.
func (r ReinitRequest) IsBound() bool { return r.Volume != "" }

// Problem is a hindrance with a name and what to do about it.
type Problem struct {
	Reason  Reason
	Message string
}

// String is its name and its message, as far as there are both.
func (p Problem) String() string {
	if p.Reason == "" || p.Message == "" {
		return string(p.Reason) + p.Message
	}
	return string(p.Reason) + ": " + p.Message
}

// Notice is a refusal or a piece of news for as long as it stands. It is an event once, when
// it begins to.
type Notice struct {
	Reason Reason
	// Subject tells notices of one reason apart: whom it is about; "" where there is but one.
	Subject string
	Message string
	Since   time.Time
}

// Is reports whether both are the same notice, whatever its words are by now.
func (n Notice) Is(other Notice) bool { return n.Reason == other.Reason && n.Subject == other.Subject }

// Return is a switchover that stopped writes and was given up.
type Return struct {
	Target, Why string
	At          time.Time
	// Times is how many came one soon after the other, with this one.
	Times int
}

// Operation is a multi-step operation in progress.
type Operation struct {
	Kind      OperationKind
	Step      Step
	From, To  string
	Reason    Reason
	StartedAt time.Time
	// Deadline of a switchover. Of a failover in its election it is for people only:
	// when no more answers are waited for.
	Deadline time.Time
	// PausedAt is when a switchover began to stop writes; zero before.
	PausedAt time.Time
	// Witnesses of a failover, each as Witness.String tells it: who may have vouched for
	// the primary, or acknowledged, when it began.
	Witnesses []string
}

// IsPastDelay reports whether the primary had its time to come back.
func (o *Operation) IsPastDelay() bool { return o.Step == StepProve || o.Step == StepElect }

// IsDelayed reports whether the primary fails, and may come back before it is replaced.
func (o *Operation) IsDelayed() bool {
	return o != nil && o.Kind == OperationFailover && o.Step == StepDelay
}

// Leaving is the primary that hands over in a switchover, and the one that is being
// replaced in a failover, once it had its time to come back; "" for none.
func (o *Operation) Leaving() (handsOver, replaced string) {
	switch {
	case o == nil:
	case o.Kind == OperationSwitchover:
		return o.From, ""
	case o.Kind == OperationFailover && o.IsPastDelay():
		return "", o.From
	}
	return "", ""
}

// Witness is an instance's Pod as it was at a moment.
type Witness struct{ Instance, PodUID, Node string }

func (w Witness) String() string { return w.Instance + "/" + w.PodUID + "/" + w.Node }

// ParseWitness is the reverse of Witness.String; what cannot be read is of no instance.
func ParseWitness(text string) Witness {
	if p := strings.Split(text, "/"); len(p) == 3 {
		return Witness{p[0], p[1], p[2]}
	}
	return Witness{}
}

// Instance is what is known of one instance.
type Instance struct {
	Name    string
	Ordinal int

	Pod    Fact[Pod]
	Volume Fact[Volume]
	// Node is the node of the Pod; of the holder of the promotion, the node
	// that the promotion names, wherever its Pod is now.
	Node Fact[Node]
	// EndedPods are the UIDs of former Pods of the instance of which the
	// kubelet reported that their containers terminated before they went.
	EndedPods []string
	// NotMade are names by which Pods of the instance were awaited, and of which this
	// operator knows that no Pod has them: Kubernetes refused to make it, or it was gone
	// before it had a node.
	NotMade []string
	// Report is the manager's last word while it can be reached; unknown
	// otherwise.
	Report Fact[Report]
	// Unheard is why its manager cannot be reached, in words that stay while that is why; "" while
	// Report is known, or if nobody has tried. It is told, and nothing is decided by it.
	Unheard string
	// Earlier are the reports before Report, newest first, bounded.
	Earlier []Fact[Report]
	// Latest is the last report, however old; unknown if there was none.
	Latest Fact[Report]
	// LastExecuted is what its mysqld was last known to have executed.
	LastExecuted Fact[gtid.Set]
	// HeldBy names the finalizers that the deletion of its Pod waits for or, where it has none, of
	// its volume claim.
	HeldBy string
	// BackedUp tells whether a backup is taken from it, and its mysqld gives nobody
	// else its data meanwhile.
	BackedUp bool
	// Successor is what came of sending its manager the binary that is to go on in its place.
	Successor Successor
}

// Pod is what Kubernetes says of an instance's Pod. A known Pod that does not
// exist is a fact, too.
type Pod struct {
	Exists bool
	UID    string
	Node   string
	// Awaited is the name by which it was awaited before it was made; "" for one that
	// nobody awaited.
	Awaited string
	// Address is its IP, "" while it has none.
	Address string
	Ready   bool
	// Terminating tells whether deletion was asked for, and Grace is how long it may take.
	Terminating bool
	Grace       time.Duration
	// Terminated tells whether the kubelet reported that the main container of this very Pod has
	// ended and will not be started again.
	Terminated bool
	// Rejected tells whether its kubelet runs it no longer, and has not said that the main
	// container has ended: that may go on for a moment, or may never have begun.
	Rejected bool
	// Current tells whether it was built from the present spec; CurrentButImage, whether it would
	// be if Image, from which its mysqld is, were the spec's.
	Current, CurrentButImage bool
	Image                    string
	// OldImage tells whether its manager is copied from another image than the operator's own.
	OldImage bool
	// NeverStarted tells whether the main container has not run yet.
	NeverStarted bool
	// Waiting is why it cannot run (reason, message); nil when it runs, or is
	// on its way.
	Waiting *Problem
	// DemoteRequested by annotation.
	DemoteRequested bool
	// FencingRequested by annotation.
	FencingRequested bool
	Role             string
	Routable         bool
}

// Node is what Kubernetes says of the node of an instance's Pod.
type Node struct {
	Exists       bool
	OutOfService bool
	Draining     bool
	// NotReady tells whether its kubelet says that it is not ready, or says nothing any more.
	NotReady bool
}
