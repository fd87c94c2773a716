package core

import (
	"time"

	"cnmsql.co/internal/gtid"
)

// Observation is all that is known of one cluster at one moment.
type Observation struct {
	Now     time.Time
	Cluster Cluster
	// Instances in the order of their ordinals: every one that has, had or
	// should have a Pod or a volume.
	Instances []Instance
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
	// that is missing, a refused object): nothing new is begun meanwhile.
	Problem *Problem
	// Failed is what could not be carried out when it was last tried, in
	// Kubernetes' own words; "" when all could.
	Failed string

	Wanted          int
	Durability      Durability
	FailoverDelay   time.Duration
	SwitchoverLimit time.Duration

	Status Status
	// Routed is the instance that the -rw Service selects.
	Routed Fact[string]
}

// Problem is a hindrance with a name and what to do about it.
type Problem struct {
	Reason  string
	Message string
}

// Status is what was decided, kept in the Cluster's status: input of the next
// decision and output of this one.
type Status struct {
	Phase     Phase
	Reason    string
	Diagnosis Diagnosis
	State     ClusterState

	CurrentPrimary   string
	CurrentPrimaryAt time.Time
	TargetPrimary    string
	TargetPrimaryAt  time.Time
	Epoch            int64
	Promotion        *Promotion
	Operation        *Operation
	FailingSince     time.Time
	LastFailover     time.Time
	EstablishedAt    time.Time

	InstanceNames []string
	LatestOrdinal int
	Diverged      []string
	Broken        []string
	Ready         int
	// Durable tells whether commits wait for the wished acknowledgements; ""
	// when none are wished.
	Durable        DurableState
	DurableMessage string
}

// Promotion permits one instance to be writable in one epoch.
type Promotion struct {
	Epoch        int64
	Instance     string
	Proof        Proof
	Evidence     string
	From         string
	RequiredGTID gtid.Set
	RequiredAcks int
	GrantedAt    time.Time
	// PodUID and Node of the Pod that may become writable. Another Pod of the
	// same instance may not, unless it runs on that node and holds the lock on
	// the volume: the former may still be alive elsewhere.
	PodUID string
	Node   string
	// WritableSince is when it was first seen writable; zero until then.
	WritableSince time.Time
}

// Operation is a multi-step operation in progress.
type Operation struct {
	Kind      OperationKind
	Step      Step
	From, To  string
	Reason    Reason
	StartedAt time.Time
	// Deadline of a switchover; of a failover in its election, when no more
	// answers are waited for.
	Deadline time.Time
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
	// Report is the manager's last word while it can be reached; unknown
	// otherwise.
	Report Fact[Report]
	// Earlier are the reports before Report, newest first, bounded.
	Earlier []Fact[Report]
	// LostSince is when the manager was last heard; zero while it can be
	// reached or if it never was.
	LostSince time.Time
	// LastWord is the last report, however old; unknown if there was none.
	LastWord Fact[Report]
}

// Pod is what Kubernetes says of an instance's Pod. A known Pod that does not
// exist is a fact, too.
type Pod struct {
	Exists bool
	UID    string
	Node   string
	Ready  bool
	// Terminating: deletion was asked for.
	Terminating bool
	// Terminated: the kubelet reported that the main container of this very
	// Pod has ended and will not be started again.
	Terminated bool
	// Current: built from the present spec.
	Current bool
	// NeverStarted: the main container has not run yet.
	NeverStarted bool
	// Waiting is why it cannot run (reason, message); nil when it runs, or is
	// on its way.
	Waiting *Problem
	// DemoteRequested by annotation.
	DemoteRequested bool
	Role            string
	Routable        bool
}

// Volume is what Kubernetes says of an instance's volume claim.
type Volume struct {
	Exists   bool
	Deleting bool
	Bound    bool
	// Problem is why it is not bound, when Kubernetes says so.
	Problem *Problem
}

// Node is what Kubernetes says of the node of an instance's Pod.
type Node struct {
	Exists       bool
	OutOfService bool
	Draining     bool
}
