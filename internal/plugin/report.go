package plugin

import (
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// Writable answers the first question of whoever is woken at night.
type Writable string

// Answers. WritableWaiting: the primary accepts writes, but their commits wait
// for acknowledgements that nobody can give, or for space.
const (
	WritableYes     Writable = "yes"
	WritableNo      Writable = "no"
	WritableWaiting Writable = "waiting"
	WritableUnknown Writable = "unknown"
)

// Report is the situation of one cluster at one time. A pointer that is nil
// stands for what is not known.
type Report struct {
	topology topology

	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Created   time.Time `json:"created,omitzero"`
	Taken     time.Time `json:"taken"`

	Phase string `json:"phase"`
	// Doubt is what an operator that runs would not call Healthy; empty when nothing is.
	Doubt           string     `json:"doubt,omitempty"`
	Writable        Writable   `json:"writable"`
	WritableBecause string     `json:"writableBecause"`
	Primary         string     `json:"primary,omitempty"`
	PrimarySince    *time.Time `json:"primarySince,omitempty"`
	Diagnosis       string     `json:"diagnosis,omitempty"`
	// FailingSince is when the primary was first seen failing.
	FailingSince *time.Time `json:"failingSince,omitempty"`
	// NotHealthySince is when the cluster was last Healthy; nil while it is, or where that is
	// not known.
	NotHealthySince *time.Time `json:"notHealthySince,omitempty"`
	// Happening is what the operator is doing or waiting for.
	Happening string `json:"happening"`
	// Blocked is the name of the refusal that stands in the way of all; Notices are those
	// of what stands beside it.
	Blocked core.Reason   `json:"blocked,omitempty"`
	Notices []core.Reason `json:"notices,omitempty"`
	// ToDo is what the reader should do; empty when there is nothing.
	ToDo []string `json:"toDo,omitempty"`

	Operation  *Operation `json:"operation,omitempty"`
	Promotion  *Promotion `json:"promotion,omitempty"`
	Durability Durability `json:"durability"`
	// Group is the MySQL group, as the operator saw it last; nil where there is none.
	Group *Group `json:"group,omitempty"`
	// Fenced instances were taken out of service by somebody.
	Fenced []string `json:"fencedInstances,omitempty"`
	// Follows is the external server that the primary follows; nil where it takes writes.
	Follows *Follows `json:"follows,omitempty"`
	// Bounds are those that the user set to failovers; nil without any.
	Bounds *Bounds `json:"failoverBounds,omitempty"`
	// Backups in short: the last one, and how the archive goes.
	Backups *InShort `json:"backups"`
	// Restore with which the Cluster begins, and how far it is; nil where it begins with none.
	Restore *v1alpha1.RestoreStatus `json:"restore,omitempty"`

	Wanted    int        `json:"wantedInstances"`
	Ready     int        `json:"readyInstances"`
	Instances []Instance `json:"instances"`
	// LiveProblem is why something about instances is not known.
	LiveProblem string `json:"liveProblem,omitempty"`

	NotOK   []Condition `json:"conditionsNotOK,omitempty"`
	Connect Connect     `json:"connect"`
}

// Operation is the multi-step operation in progress.
type Operation struct {
	Kind     string     `json:"kind"`
	Step     string     `json:"step"`
	Meaning  string     `json:"meaning,omitempty"`
	From     string     `json:"from,omitempty"`
	To       string     `json:"to,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Started  *time.Time `json:"started,omitempty"`
	Deadline *time.Time `json:"deadline,omitempty"`
}

// Promotion is the last permission to take writes.
type Promotion struct {
	Epoch         int64      `json:"epoch"`
	Instance      string     `json:"instance"`
	From          string     `json:"from,omitempty"`
	Proof         string     `json:"proof"`
	Evidence      string     `json:"evidence,omitempty"`
	Granted       *time.Time `json:"granted,omitempty"`
	WritableSince *time.Time `json:"writableSince,omitempty"`
	// Resumed: the instance was restarted after it was granted, and went on under it in a new epoch.
	Resumed bool `json:"resumed,omitempty"`
}

// Durability is how many replicas acknowledge a commit.
type Durability struct {
	Mode   string `json:"mode"`
	Wished int    `json:"wishedAcks"`
	// Acks and Attached are the primary's own word.
	Acks     *int   `json:"acks,omitempty"`
	Attached *int   `json:"attachedReplicas,omitempty"`
	Status   string `json:"durable,omitempty"`
	Message  string `json:"message,omitempty"`
	// LosslessSince is the epoch since when each acknowledged write is on as many
	// replicas as Guaranteed; 0 when that cannot be promised.
	LosslessSince int64 `json:"losslessSinceEpoch,omitempty"`
	Guaranteed    int   `json:"guaranteedReplicas,omitempty"`
}

// Bounds of failovers, from spec.failoverPolicy.
type Bounds struct {
	TransactionsBehind *uint64  `json:"maxTransactionsBehind,omitempty"`
	Lag                string   `json:"maxReplicationLag,omitempty"`
	Between            string   `json:"minTimeBetweenFailovers,omitempty"`
	Preferred          []string `json:"preferredPrimary,omitempty"`
	// LastFailover, and NotBefore when the next one may begin, if that is not yet.
	LastFailover *time.Time `json:"lastFailover,omitempty"`
	NotBefore    *time.Time `json:"noFailoverBefore,omitempty"`
}

// Instance is the situation of one instance.
type Instance struct {
	Name  string `json:"name"`
	Role  string `json:"role,omitempty"`
	State string `json:"state"`
	Ready bool   `json:"ready"`
	// Lag is how old the transaction is that is being applied.
	Lag *float64 `json:"lagSeconds,omitempty"`
	// Lacks is the number of the primary's transactions that the instance has
	// not executed.
	Lacks *uint64 `json:"lacksTransactions,omitempty"`
	// Holds is the number of transactions that it has executed or received.
	Holds *uint64 `json:"holdsTransactions,omitempty"`
	// Errant is the number of transactions that the primary does not have,
	// ErrantSet which.
	Errant    *uint64 `json:"errantTransactions,omitempty"`
	ErrantSet string  `json:"errantSet,omitempty"`
	// ErrantTimes is when they were committed, as far as the instance's logs tell.
	ErrantTimes *core.Times `json:"errantTimes,omitempty"`
	Source      string      `json:"source,omitempty"`
	// Member is its state in the group.
	Member  string `json:"memberState,omitempty"`
	Version string `json:"version,omitempty"`
	Node    string `json:"node,omitempty"`
	// Restarts of the container, and of mysqld inside it.
	Restarts *int   `json:"restarts,omitempty"`
	Clone    *Clone `json:"clone,omitempty"`
	// Restored is how much of the backup, or then of the archive, is restored.
	Restored string `json:"restored,omitempty"`
	// Live: the instance itself was asked.
	Live bool `json:"live"`
	// Stale: it was asked and did not answer; what is shown was true once.
	Stale bool     `json:"stale,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// Group is what a majority of a group's members says.
type Group struct {
	Name         string `json:"groupName"`
	Bootstrapped bool   `json:"bootstrapped"`
	HasQuorum    bool   `json:"hasQuorum"`
	Primary      string `json:"primary,omitempty"`
	ViewID       string `json:"viewId,omitempty"`
	Consistency  string `json:"consistency"`
	// Online of Size members, of which Majority are a majority.
	Online   int      `json:"onlineMembers"`
	Size     int      `json:"size"`
	Majority int      `json:"majority"`
	Wanted   int      `json:"wantedInstances"`
	Members  []Member `json:"members"`
}

// Member is an instance as the group sees it.
type Member struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Role  string `json:"role,omitempty"`
	// Reachable: the operator hears its manager.
	Reachable bool `json:"reachable"`
	Fenced    bool `json:"fenced,omitempty"`
	Diverged  bool `json:"diverged,omitempty"`
	// LeftOut: a recovery of the quorum went on without it, and it is not back yet.
	LeftOut bool `json:"leftOut,omitempty"`
	// Excluded: nor may it join, until it is known what it holds.
	Excluded bool `json:"barred,omitempty"`
}

// Clone is the progress of a clone.
type Clone struct {
	Donor   string `json:"donor"`
	Stage   string `json:"stage,omitempty"`
	Percent int    `json:"percent"`
}

// Condition is a condition that does not have its good value.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Connect tells how to reach the cluster.
type Connect struct {
	Services  []Service `json:"services"`
	AppSecret string    `json:"appSecret"`
	Commands  []string  `json:"commands"`
}

// Service is one address of the cluster. RoutedTo is the instance that the -rw
// Service selects.
type Service struct {
	Address  string `json:"address"`
	For      string `json:"for"`
	RoutedTo string `json:"routedTo,omitempty"`
}
