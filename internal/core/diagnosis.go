package core

// Diagnosis names what is known of the primary.
type Diagnosis string

// Diagnoses of the primary.
const (
	// DiagnosisNone says that there is no primary yet.
	DiagnosisNone Diagnosis = "NotEstablished"
	// PrimaryHealthy says that the primary is writable in the present epoch.
	PrimaryHealthy Diagnosis = "PrimaryHealthy"
	// PrimaryFollows says that the primary follows an external server, and takes no writes.
	PrimaryFollows Diagnosis = "PrimaryFollows"
	// PrimaryPromoting says that the primary was permitted to become writable and is on its way.
	PrimaryPromoting Diagnosis = "PrimaryPromoting"
	// PrimaryDemoted says that the primary was made read-only so that another can take over.
	PrimaryDemoted Diagnosis = "PrimaryDemoted"
	// MysqldDown says that, by the word of the primary's manager, mysqld does not run, or is only
	// being started again.
	MysqldDown Diagnosis = "MysqldDown"
	// PrimaryClosed says that the primary was made read-only to give its data to instances without
	// which no commit would end, and opens again when they are attached.
	PrimaryClosed Diagnosis = "PrimaryClosed"
	// PrimaryHung says that, by the word of the primary's manager, mysqld does not answer.
	PrimaryHung Diagnosis = "PrimaryHung"
	// PrimaryFenced says that a user fenced the primary. That is never a reason to fail over.
	PrimaryFenced Diagnosis = "PrimaryFenced"
	// PrimaryFailed says that, by its own word, the primary's manager cannot run mysqld.
	PrimaryFailed Diagnosis = "PrimaryFailed"
	// PrimaryIsolated says that the primary is writable and can be reached, but commits hang
	// because its replicas do not reach it, while they can be reached themselves.
	PrimaryIsolated Diagnosis = "PrimaryIsolated"
	// PrimaryFull says that the primary is writable, but commits hang because its volume is full. Nobody
	// is promoted for that: the others' volumes are of the same size, and most likely as full.
	PrimaryFull Diagnosis = "PrimaryFull"
	// PrimaryTerminating says that the primary is being stopped and wants to hand over.
	PrimaryTerminating Diagnosis = "PrimaryTerminating"
	// PodGone says that the Pod that became writable does not exist any more, or has ended.
	PodGone Diagnosis = "PodGone"
	// PrimaryDataLost says that the primary's volume is empty.
	PrimaryDataLost Diagnosis = "PrimaryDataLost"
	// PrimaryLostTransactions says that replicas hold transactions of the primary's own that it
	// does not hold any more.
	PrimaryLostTransactions Diagnosis = "PrimaryLostTransactions"
	// PrimaryUnreachable says that the primary's manager cannot be reached, which tells
	// nothing about mysqld.
	PrimaryUnreachable Diagnosis = "PrimaryUnreachable"
	// PrimaryUnreachableButReplicasStream says that the primary's manager cannot be reached, and
	// replicas receive from its mysqld all the same. That is never a reason to act.
	PrimaryUnreachableButReplicasStream Diagnosis = "PrimaryUnreachableButReplicasStream"
	// PrimaryUnreachableReplicasLost says that the primary's manager cannot be reached, and
	// replicas do not reach its mysqld either.
	PrimaryUnreachableReplicasLost Diagnosis = "PrimaryUnreachableReplicasLost"
)

// Diagnoses of a group.
const (
	// GroupElecting says that the group has a quorum, and no primary yet.
	GroupElecting Diagnosis = "GroupElecting"
	// GroupQuorumLost says that members report that they have lost the majority, or that none of
	// those who can be asked is online.
	GroupQuorumLost Diagnosis = "GroupQuorumLost"
	// GroupUnknown says that too few members can be asked to tell.
	GroupUnknown Diagnosis = "GroupUnknown"
)

// implied is what a diagnosis says besides its name.
type implied uint8

const (
	// takesWrites says that the primary's mysqld is writable, whatever else is the matter.
	takesWrites implied = 1 << iota
	// endsCommits says that the primary takes writes, and nothing keeps their commits from ending.
	endsCommits
	// well says that the primary takes writes, and nothing has to be done about its data.
	well
	// steady says that the primary takes writes, or follows an external server, and that it stays the primary:
	// nothing is on the way or waits for a human that would end that.
	steady
	// failing says that the diagnosis is a reason to replace the primary.
	failing
	// replaced says that the primary is replaced although it takes writes, once that has lasted.
	replaced
	// stopped says that nobody takes writes, as far as can be told.
	stopped
	// unreachable says that nobody can ask the primary.
	unreachable
)

// implications of each diagnosis; of a group, its members say who takes writes.
var implications = map[Diagnosis]implied{
	DiagnosisNone:           0,
	PrimaryHealthy:          takesWrites | endsCommits | well | steady,
	PrimaryFollows:          steady,
	PrimaryTerminating:      takesWrites | endsCommits | well,
	PrimaryLostTransactions: takesWrites | endsCommits,
	PrimaryIsolated:         takesWrites | replaced,
	PrimaryFull:             takesWrites | steady,
	PrimaryPromoting:        stopped,
	PrimaryFenced:           stopped,
	PrimaryClosed:           0, // it opens again by itself
	PrimaryDemoted:          failing | stopped,
	MysqldDown:              failing | stopped,
	PrimaryHung:             failing | stopped,
	PrimaryFailed:           failing | stopped,
	PodGone:                 failing | stopped,
	PrimaryDataLost:         failing | stopped,

	PrimaryUnreachable:                  unreachable,
	PrimaryUnreachableButReplicasStream: unreachable,
	PrimaryUnreachableReplicasLost:      unreachable | failing | stopped,

	GroupElecting:   0,
	GroupQuorumLost: 0,
	GroupUnknown:    unreachable,
}

func (d Diagnosis) implies(what implied) bool { return implications[d]&what != 0 }

// TakesWrites reports whether the primary's mysqld is writable, whatever else is the matter
// with it. Their commits may hang.
func (d Diagnosis) TakesWrites() bool { return d.implies(takesWrites) }

// EndsCommits reports whether the primary takes writes and their commits end.
func (d Diagnosis) EndsCommits() bool { return d.implies(endsCommits) }

// IsWell reports whether the primary takes writes and may go on doing so.
func (d Diagnosis) IsWell() bool { return d.implies(well) }

// IsSteady reports whether the primary takes writes, or follows an external server, and stays the primary; it may
// be full.
func (d Diagnosis) IsSteady() bool { return d.implies(steady) }

// IsFailing reports whether the primary is to be replaced.
func (d Diagnosis) IsFailing() bool { return d.implies(failing) }

// BeginsFailover reports whether a failover begins for it, at once or when it has lasted.
func (d Diagnosis) BeginsFailover() bool { return d.implies(failing | replaced) }

// IsStopped reports whether nobody takes writes, as far as can be told.
func (d Diagnosis) IsStopped() bool { return d.implies(stopped) }

// IsUnreachable reports whether nobody can ask the primary, or enough members of a group.
func (d Diagnosis) IsUnreachable() bool { return d.implies(unreachable) }
