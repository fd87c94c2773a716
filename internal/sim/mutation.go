package sim

import (
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/core/archive"
)

// mutation is a fault in the code under test, put in from outside at the seams
// between the decisions and the world. The zero value changes nothing. It is for
// tests: a simulation that does not find a mutation would not find the mistake.
type mutation struct {
	// Around the decisions.
	Observe  func(*world, *core.Observation)
	Plan     func(*core.Observation, *core.Plan)
	Facts    func(*agent.Facts)
	Decision func(*agent.Facts, *agent.Decision)
	Archived func(*archive.Archive)
	Holdings func(*archive.Holdings)
	Expired  func(*archive.Holdings, *archive.Expiry)

	// In what the shells promise.
	ForgetFenced         bool // the promise is not kept over a restart
	PromiseBeforeItHolds bool // it is told while mysqld still accepts writes
	PromiseBeforeFinal   bool // it is told with a position that was read before it held
	PromiseOnly          bool // the promise is written, and writes go on
	PromiseWithoutLock   bool // for a volume that another manager uses
	BelievesThePast      bool // goes by whatever status it is told
	FreezeOnPaper        bool // receiving goes on
	ReleaseWaiters       bool // semi-sync is turned off to get rid of waiting sessions
	StopPolitely         bool // mysqld gets SIGTERM before writes have stopped
	TailAlways           bool // a tail counts as never acknowledged whatever was promised
	RelayNotDurable      bool // under quorum, too
	WriteAnyVersion      bool // the status is written whatever was written meanwhile
	ForgetFrozen         bool // the promise not to receive is not kept over a restart
	VouchWhileWithheld   bool // a vouch is given in spite of the promise
	VouchForAnybody      bool // whoever asks is vouched for
	NoSelfFencing        bool // a primary that nobody stands behind goes on
	LeaseTTLIgnored      bool // the operator does not wait until the lease has run out
	SeizeAnyVersion      bool // the lease is taken though it was renewed
	NumbersAgain         bool // a server whose tail was cut keeps its UUID
	HungRenews           bool // the lease is renewed though mysqld does not answer
	AcksUnnumbered       bool // commits wait for fewer acknowledgements on the word of a late order
	ShipsUnexecuted      bool // what is written leaves before it is executed
	HeldIsStart          bool // a new branch begins at its start
	ShipsOn              bool // who was replaced ships into its successor's branch
	BelievesListings     bool // what a listing does not tell is not there
	PurgeUnarchived      bool // binary logs that expired go, archived or not
	AnyBoot              bool // the page cache of another boot is taken for the same
	AnyMount             bool // and that of another mount
	WriteErrorsIgnored   bool // the volume's word that it could not write is not heard
	LackForgotten        bool // that it may lack something is forgotten by a second start
	MarkWithoutFlush     bool // relay logs are said to be flushed, and are not
	StandstillBelieved   bool // what was measured before the operator's clock stood still counts after it
	ClocksDrift          bool // monotonic clocks do not run equally fast, by far
}
