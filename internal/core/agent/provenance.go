package agent

import "cnmsql.co/internal/core"

// A replica acknowledges what it has written to its relay log, and mysqld need not have
// flushed it. What was written lives on in the page cache, over the end of mysqld, of the
// manager, of the container and of the Pod: only the end of the cache itself loses it, and
// that can be told afterwards.

// Residence is a page cache, by what differs where another one is: the boot of the kernel,
// the mount of the volume's filesystem, and the node.
type Residence struct{ Boot, Mount, Node string }

// IsKnown reports whether the residence can be held against another. Of one that is not
// known nothing is shown.
func (r Residence) IsKnown() bool { return r.Boot != "" && r.Mount != "" }

// Cached is what the volume remembers of relay logs that mysqld did not flush. It is on the
// disk before anything is received that it speaks of.
type Cached struct {
	// Unflushed tells whether what was received In a page cache may be nowhere else.
	Unflushed bool
	In        Residence
	// MayLack tells whether it may lack what it has acknowledged, until it is whole again.
	MayLack bool
	// Noted tells whether the record goes back to before these data received what is in their relay
	// logs. Of a former release there may be none.
	Noted bool
}

// Start is what is known when mysqld is about to start.
type Start struct {
	Here Residence
	// Failed tells whether the volume has reported since that something could not be written, or
	// cannot tell that all was.
	Failed bool
	// Drops tells whether mysqld starts without the relay logs that are there.
	Drops bool
}

// Starts is what is remembered before mysqld starts. Where nothing was received that is not
// flushed, there is nothing to lose; a volume of a former release remembers nothing of it,
// for its mysqld flushed each event under quorum. Otherwise only the same cache, of which no
// error was told, still has it. Relay logs that may be torn are not read again: an instance
// that may lack something starts without them, and has nothing unflushed then.
func (c Cached) Starts(s Start) Cached {
	lives := s.Here.IsKnown() && s.Here == c.In && !s.Failed && !s.Drops
	if !c.Unflushed || lives {
		return c
	}
	return Cached{MayLack: true}
}

// Asked is what is remembered before the volume is asked whether it could write all: a kernel
// tells an error once, and who is told may end before it is remembered. Who finds this at the
// next start does not know what the answer was.
func (c Cached) Asked() Cached {
	if c.Unflushed {
		c.In = Residence{}
	}
	return c
}

// Receives is what is remembered before anything is received. Where it was received first
// stays: if the cache has changed since, that shows at the next start.
func (c Cached) Receives(here Residence) Cached {
	if !c.Unflushed {
		c.Unflushed, c.In = true, here
	}
	c.Noted = true
	return c
}

// Flushed returns the record after mysqld has ended: all that it had received is on the disk.
func (c Cached) Flushed() Cached { return Cached{MayLack: c.MayLack, Noted: c.Noted} }

// Replaced returns the record after the data are made anew. What a copy says of relay logs
// is about the donor's.
func (c Cached) Replaced() Cached { c.Noted = false; return c }

// DropsRelayLogs reports whether mysqld is to start without the relay logs that are there. They may
// be torn where nobody has noted in which page cache they were written. Only under quorum a former
// release flushed each event, and left no record.
func (c Cached) DropsRelayLogs(flushed bool) bool { return c.MayLack || !flushed && !c.Noted }

// Opens returns the record of an instance that is about to take writes. It has executed all that it
// held and all that its promotion required of it, which mysqld flushes at each commit. An election
// has seen to it that nothing acknowledged is missing in that. Its relay logs are gone.
func (c Cached) Opens() Cached { return Cached{} }

// Whole returns the record of an instance that has all that it may have lacked.
func (c Cached) Whole() Cached { c.MayLack = false; return c }

// BecomeWhole remembers that nothing is missing any more.
type BecomeWhole struct{}

func (BecomeWhole) action() {}

func (BecomeWhole) String() string { return "remember that it has all that it ever acknowledged" }

// NoteReceiving remembers where what is received is cached.
type NoteReceiving struct{}

func (NoteReceiving) action() {}

func (NoteReceiving) String() string { return "remember where what it receives is cached" }

// becomeWhole notes that an instance that may lack what it acknowledged has it all, and asks the
// primary as long as that is not shown. The instance has it all once it holds all that a writable
// primary of the present promotion had in its binary log at a moment after mysqld was started here.
// What it acknowledged in a former life of its mysqld was in that log before, or the promotion
// required it, or its acknowledgement counts nowhere any more. That the primary had executed it is
// not enough: with two acknowledgements awaited, the primary may have kept one from that former
// life, and execute when the other comes.
func becomeWhole(f *Facts, primary string) []Action {
	if !f.MayLack {
		return nil
	}
	p := f.Primary
	isAnswered := p != nil && p.Instance == primary && p.Epoch == f.promotion().Epoch &&
		p.WritableEpoch == p.Epoch && p.At.After(f.Mysqld.StartedAt)
	switch {
	case !isAnswered:
		return f.askPrimary(primary)
	case f.Server.Holds().Contains(p.Logged):
		return []Action{BecomeWhole{}}
	case f.Server.Holds().Contains(p.Executed) && f.Now.Sub(p.At) > positionRefresh:
		return f.askPrimary(primary) // what was being committed may have been rolled back
	}
	return nil
}

func mayLackText(primary string) string {
	return "may lack transactions that it acknowledged: they were not flushed before its node, its mount or its " +
		"volume failed; elections count it again when it holds what " + primary + " had in its log"
}

// TellProvenance tells whether the instance may lack what it acknowledged.
func (c Cached) TellProvenance(r *core.Report) { r.MayLack = c.MayLack }
