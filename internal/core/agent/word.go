package agent

import (
	"fmt"
	"time"

	"cnmsql.co/internal/core"
)

// A word about the promotion is what lets a crashed primary start that may hold a tail of
// commits which nobody acknowledged: recovery commits them, so that it must not be
// started while another may have been promoted, who lacks them. What was known before
// mysqld ended is no word, and neither is what a watch that may be cut off still shows.
const (
	// WordLife is how long a word is good for a start, counted from when it was asked for.
	WordLife = 3 * time.Second
	// wordRefresh is how old it may be before it is asked for again.
	wordRefresh = time.Second
)

// Word is what the API server answered when it was asked for the Cluster.
type Word struct {
	// At is when it was asked.
	At time.Time
	// Epoch is the Cluster's, Instance who is promoted.
	Epoch    int64
	Instance string
}

// AskWord reads the Cluster from the API server itself.
type AskWord struct{}

func (AskWord) action() {}

func (AskWord) String() string { return "ask the API server who is promoted" }

// isWordAwaited reports whether the log may end in commits that waited for acknowledgements, and
// there are others who may have been promoted since.
func (f *Facts) isWordAwaited() bool {
	return f.TailEpoch != 0 && f.Data == core.DataPopulated && f.promotion() != nil && f.Cluster.Instances > 1
}

// isTold reports whether somebody said after mysqld ended, and just now, that the promotion is
// still the one that is known here: the API server, a majority that vouches, or the operator
// in its order to go on.
func (f *Facts) isTold() bool {
	p, w := f.promotion(), f.Word
	switch {
	case f.Permitted() && f.RestartEpoch >= p.Epoch:
		return true
	case w != nil && f.isFresh(w.At) && w.Epoch == f.Cluster.Epoch && w.Instance == p.Instance:
		return true
	}
	return f.isVouched()
}

// isVouched reports whether a majority of the instances has said so since mysqld
// ended, and just now.
func (f *Facts) isVouched() bool {
	with := map[string]bool{f.Me: true}
	for _, v := range f.Vouches {
		if f.isFresh(v.At) {
			with[v.Instance] = true
		}
	}
	return len(with) >= core.Majority(f.Cluster.Instances)
}

func (f *Facts) isFresh(asked time.Time) bool {
	return asked.After(f.Mysqld.DownSince) && f.Now.Sub(asked) <= WordLife
}

// askWord asks while there is no word that lasts until the next look.
func (f *Facts) askWord() []Action {
	if f.Asking || f.Word != nil && f.isFresh(f.Word.At) && f.Now.Sub(f.Word.At) < wordRefresh {
		return nil
	}
	return []Action{AskWord{}}
}

// NeedsVouches reports whether this instance counts on its peers, to stay
// writable or to be started.
func (f *Facts) NeedsVouches() bool {
	return f.Permitted() && (f.Cluster.Leased() || !f.Mysqld.Up && f.isWordAwaited())
}

// awaitWord keeps mysqld of a crashed primary from starting while the primary hears nobody, and
// while the operator replaces it and nobody said that it is to go on. It could not acknowledge
// anything, and would come back diverged.
func (f *Facts) awaitWord() (Decision, bool) {
	if !f.isWordAwaited() || !f.Permitted() {
		return pass()
	}
	switch {
	case !f.isTold():
		message := fmt.Sprintf("mysqld does not start until the API server or a majority of the instances confirms "+
			"that %s is still the primary of epoch %d, because its log may end with unacknowledged transactions: "+
			"restore the network of this instance",
			f.Me, f.promotion().Epoch)
		if f.AskFailed != "" {
			message += "; " + f.AskFailed
		}
		return tell(core.Stopped, core.InstanceAwaitingWord, message, f.askWord()...)
	case f.isBeingReplaced() && f.RestartEpoch < f.promotion().Epoch && !f.isVouched():
		return tell(core.Stopped, core.InstanceAwaitingWord, "mysqld does not start while the operator replaces this "+
			"instance, unless the operator orders it or a majority of the instances vouches for it: recovery would "+
			"commit unacknowledged transactions", f.askWord()...)
	}
	return pass()
}

// isBeingReplaced reports whether a failover from this instance is under way, also while
// spec.failoverDelay passes. Without a majority this instance could acknowledge nothing.
func (f *Facts) isBeingReplaced() bool {
	return f.Cluster.DelayedFrom == f.Me || f.Cluster.FailoverFrom == f.Me
}

// hasWaited reports whether this instance has waited long enough for whoever is about to be
// promoted, since mysqld ended and since that was known.
func (f *Facts) hasWaited() bool { return f.waited() > TailWait }

// waited is since when it could have known.
func (f *Facts) waited() time.Duration {
	since := f.Mysqld.DownSince
	if f.Cluster.PrimarySince.After(since) {
		since = f.Cluster.PrimarySince
	}
	return f.Now.Sub(since)
}

// tellsSamePrimary tells whether two views say the same about who is primary, and of its
// being replaced.
func (c *Cluster) tellsSamePrimary(of *Cluster) bool {
	if c == nil || of == nil || (c.Promotion == nil) != (of.Promotion == nil) {
		return false
	}
	return (c.Promotion == nil ||
		c.Promotion.Epoch == of.Promotion.Epoch && c.Promotion.Instance == of.Promotion.Instance) &&
		c.Epoch == of.Epoch && c.CurrentPrimary == of.CurrentPrimary && c.FailoverFrom == of.FailoverFrom
}
