package verify

import (
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Phase is how far a verification is; "" before the first one.
type Phase string

// Phases. The last two are for good.
const (
	Pending      Phase = "Pending"
	TakingSample Phase = "Sampling"
	Restoring    Phase = "Restoring"
	Checking     Phase = "Checking"
	Succeeded    Phase = "Succeeded"
	Failed       Phase = "Failed"
)

// Runs tells whether a verification was begun and has not ended.
func (p Phase) Runs() bool { return p == TakingSample || p == Restoring || p == Checking }

// HasEnded tells whether it succeeded or failed.
func (p Phase) HasEnded() bool { return p == Succeeded || p == Failed }

// Record is what is remembered of the last verification, from one look to the next.
type Record struct {
	Phase   Phase
	Reason  core.Reason
	Message string
	// Request is that of a human which it answers, Slot the time of the schedule that it was
	// begun for.
	Request        string
	Slot           time.Time
	Started, Ended time.Time
	// Copy is the UID of the throw-away Cluster; "" before it was made and once it is gone.
	Copy string
	// Sample is of the Cluster, while the verification runs, SampledAt when it was taken, and
	// NotCompared why there is none.
	Sample      *Sample
	SampledAt   time.Time
	NotCompared string
	// What was found.
	BackupID, RestoredTo      string
	RestoredToTime            time.Time
	RestoreTook               time.Duration
	Tables, Checked, Compared int
	LastSucceeded             time.Time
}

// Facts are what is known of a Cluster whose backups may be tried.
type Facts struct {
	Now     time.Time
	Cluster string
	// Deleted tells whether the Cluster is being deleted, and the copy with it.
	Deleted bool
	// HasStore tells whether backups go somewhere; HasData, whether the Cluster had a primary.
	HasStore, HasData bool
	// BackupRunning is the name of a Backup of it that runs; "" when none does.
	BackupRunning string
	// Request is what a human asks for; "" when nothing. Slot is a time of the schedule for
	// which a verification is to begin; zero when there is none.
	Request string
	Slot    time.Time
	// Sampler is the instance of the Cluster whose rows can be summed up, to be compared with
	// the restored ones; NoSampler is why there is none.
	Sampler, NoSampler string
	Sampling           Sampling
	// ArchiveDelay is how long it takes at most until what is executed is archived.
	ArchiveDelay time.Duration
	// Limit is how long a verification may take.
	Limit   time.Duration
	Copy    Copy
	Check   Check
	Trouble Trouble
	Record  Record
}

// Copy is the throw-away Cluster.
type Copy struct {
	Exists bool
	// Foreign tells whether it has the name, and the operator did not make it for this Cluster.
	Foreign bool
	// Deleting tells whether it is about to be gone.
	Deleting bool
	UID      string
	// Refused is why Kubernetes refused to make it; "" when it did not.
	Refused string
	// Created, and Writable since when it takes writes; zero before.
	Created, Writable time.Time
	// NotOurs tells whether the backups are of an earlier Cluster of the name.
	NotOurs bool
	// Blocked is why it cannot restore now, Doing what it says otherwise.
	Blocked, Doing string
	// PassedOver are the newer backups that it could not begin with.
	PassedOver []core.PassedOver
}

// Trouble is since when, and until when, the copy could not restore. A restore that failed is
// started again, so that it seems to go on for a moment.
type Trouble struct{ Since, Seen time.Time }

// Check is what the copy's instance says of its tables.
type Check struct {
	// Asked tells whether it was ordered, and the instance has answered.
	// Unreachable is why it has not.
	Asked       bool
	Unreachable string
	Done        bool
	// Error is why it could not be ended.
	Error string
	// Table is the one that is being checked.
	Table           string
	Tables, Checked int
	Damaged         []Finding
	// Sums are of the tables of the sample, Executed what the server had executed then.
	Sums     []Sum
	Executed gtid.Set
	// What the instance restored.
	BackupID, RestoredTo string
	RestoredToTime       time.Time
}

// Finding is a table, or a backup, that is not as it should be.
type Finding struct{ Name, Message string }

// Plan is what to do, in this order: write the record, take the request, make, order or
// delete, tell.
type Plan struct {
	Record  Record
	Trouble Trouble
	// TakeRequest tells whether the human's request is answered, or is about to be.
	TakeRequest bool
	// Sample the Cluster, Create the copy, Order the check, Delete the copy.
	Sample, Create, Order, Delete bool
	Events                        []core.Event
	// Wake is when to look again; 0: not before something changes.
	Wake time.Duration
}
