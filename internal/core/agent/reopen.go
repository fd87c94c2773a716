package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// A primary whose mysqld has ended takes writes again in its own epoch, without an election. Its
// storage may have lost what it had said was written. What it had sent before is on others then,
// and mysqld gives the numbers again, to other transactions: the others take those for the ones
// that they have. So it asks them first. They get transactions of its own server from itself
// alone, so that what they say does not change while its mysqld is not open, once they have read all
// that it had sent: that may come in as long as they hear it over their connection of before.

const (
	// HeldLimit is how long one may take to answer.
	HeldLimit = heldWait
	// heldWait is how long others may take to answer, counted from when they are asked, which is
	// before mysqld is started: a crash of mysqld alone loses no page cache.
	heldWait = time.Second
	// heldWaitAnew is how long they may where the manager is another one, too: the node may have
	// been off, and theirs as well.
	heldWaitAnew = VerdictWait
)

// Held is what another instance said it holds.
type Held struct {
	Instance string
	At       time.Time
	Set      gtid.Set
	// From is the UUID of the server that it is connected to and hears, and may get more from; "" for none.
	From string
}

// AskHeld asks others, all at once, what they hold. Anew is the first time since mysqld ended.
type AskHeld struct {
	Instances []string
	Anew      bool
}

func (AskHeld) action() {}

func (a AskHeld) String() string { return "ask " + strings.Join(a.Instances, ", ") + " what they hold" }

// HeldBy is what an instance holds by its own word, and whether its word says so: one that has no
// data holds nothing, and one of which mysqld does not answer may hold anything.
func HeldBy(r core.Report, at time.Time) (h Held, says bool) {
	h = Held{Instance: r.Instance, At: at}
	switch {
	case r.Data == core.DataEmpty || r.Data == core.DataScratch:
		return h, true
	case r.Server == nil:
		return h, false
	}
	h.Set = r.Server.Holds()
	if of := r.Server.Replication; of != nil && of.IORunning && !of.Silent {
		h.From = of.SourceUUID
	}
	return h, true
}

// Elsewhere is what others were asked, and said, of what they hold.
type Elsewhere struct {
	// Since is when they were asked first, or, where mysqld was opened for writes, Opened when.
	// Both count for the life of mysqld that they are in.
	Since, Opened time.Time
	// asking: they are being asked. again is when they may be asked the next time.
	asking bool
	again  time.Time
	held   []Held
}

// Asks notes that others are asked now.
func (e Elsewhere) Asks(a AskHeld, now time.Time) Elsewhere {
	if a.Anew {
		e = Elsewhere{Since: now, Opened: e.Opened}
	}
	e.asking = true
	return e
}

// Says notes the answer of one.
func (e Elsewhere) Says(h Held) Elsewhere {
	before := slices.DeleteFunc(slices.Clone(e.held), func(of Held) bool { return of.Instance == h.Instance })
	e.held = append(before, h)
	return e
}

// Ends notes that all have answered, or had their time.
func (e Elsewhere) Ends(now time.Time) Elsewhere {
	e.asking, e.again = false, now.Add(AskRetry)
	return e
}

// Opens notes that mysqld is opened for writes: what it lost before is of no use to ask any more.
func (e Elsewhere) Opens(now time.Time) Elsewhere { return Elsewhere{Opened: now} }

// reopens reports whether this instance is to take writes again in an epoch in which it took some,
// and its mysqld has not done so since it was started last.
func (f *Facts) reopens() bool {
	p := f.promotion()
	return f.Permitted() && f.WasPrimaryEpoch == p.Epoch && f.WritableEpoch != p.Epoch &&
		!f.Cluster.Topology.ElectsByItself() && f.Data == core.DataPopulated &&
		!f.Elsewhere.Opened.After(f.Mysqld.DownSince)
}

// answers are those since mysqld ended, by who gave them.
func (f *Facts) answers() map[string]Held {
	said := map[string]Held{}
	if e := f.Elsewhere; e.Since.After(f.Mysqld.DownSince) {
		for _, h := range e.held {
			if h.At.After(f.Mysqld.DownSince) {
				said[h.Instance] = h
			}
		}
	}
	return said
}

// mayHold are those that may hold what this instance has lost. Who has diverged is not asked:
// what it holds counts for nobody, and it could not take over.
func (f *Facts) mayHold() []string {
	return slices.DeleteFunc(slices.Clone(f.Cluster.Names), func(name string) bool {
		return name == f.Me || slices.Contains(f.Cluster.Diverged, name)
	})
}

// askHeld asks who has not answered yet, and again who holds what this instance lacks.
func (f *Facts) askHeld() []Action {
	e, said := f.Elsewhere, f.answers()
	isNew := !e.Since.After(f.Mysqld.DownSince)
	if !f.reopens() || !isNew && (e.asking || f.Now.Before(e.again)) {
		return nil
	}
	unheard := f.unheard()
	ask := slices.DeleteFunc(f.mayHold(), func(name string) bool {
		h := said[name]
		return !slices.Contains(unheard, name) && (f.lostTo(h).IsEmpty() || f.Now.Sub(h.At) < positionRefresh)
	})
	if len(ask) == 0 {
		return nil
	}
	return []Action{AskHeld{ask, isNew}}
}

// lostTo is what another holds of this instance's own server, and this one does not.
func (f *Facts) lostTo(h Held) gtid.Set {
	if f.Server == nil {
		return gtid.Set{}
	}
	return h.Set.Of(f.Server.UUID).Subtract(f.Server.Executed)
}

// awaitHeld keeps a primary that has lost what others hold from taking writes again. Who does not
// answer in time is not waited for: a primary that is left alone is not shut out.
func (f *Facts) awaitHeld() (Decision, bool) {
	if !f.reopens() {
		return pass()
	}
	said, lost := f.answers(), gtid.Set{}
	var by []string
	for _, name := range f.mayHold() {
		if more := f.lostTo(said[name]); !more.IsEmpty() {
			by, lost = append(by, name), lost.Union(more)
		}
	}
	unheard := f.unheard()
	switch {
	case len(by) > 0:
		return tell(core.Running, core.InstanceTransactionsMissing, fmt.Sprintf("stays read-only: its storage has "+
			"lost the transactions %s, which still exist on %s. New writes would reuse these GTIDs for different "+
			"transactions", lost.Abbreviate(4), strings.Join(by, ", ")), f.askHeld()...)
	case len(unheard) > 0 && !f.hasWaitedForHeld():
		return tell(core.Running, core.InstancePromoting, "asks "+strings.Join(unheard, ", ")+
			" which of its transactions they hold, before it takes writes again", f.askHeld()...)
	}
	return pass()
}

func (f *Facts) hasWaitedForHeld() bool {
	wait := heldWaitAnew
	if f.Mysqld.Ended {
		wait = heldWait
	}
	since := f.Elsewhere.Since
	return since.After(f.Mysqld.DownSince) && f.Now.Sub(since) >= wait
}

// unheard are those that have not said yet what they hold, or may get more of what this instance
// had sent, where it takes writes again.
func (f *Facts) unheard() []string {
	if !f.reopens() {
		return nil
	}
	said := f.answers()
	return slices.DeleteFunc(f.mayHold(), func(name string) bool {
		h, has := said[name]
		mayGetMore := h.From != "" && (f.Server == nil || h.From == f.Server.UUID)
		return has && !mayGetMore
	})
}
