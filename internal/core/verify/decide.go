package verify

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
)

const (
	// suffix ends the copy's name.
	suffix = "-verify"
	// nameLimit is how long the name of a Cluster may be.
	nameLimit = 50
	// DefaultLimit is how long a verification may take.
	DefaultLimit = 6 * time.Hour
	// stuckLimit is how long a restore may be refused, or fail, before it is given up. The
	// instance starts again every half minute.
	stuckLimit = 15 * time.Minute
	// troubleGap is how long a restore has to go on for earlier trouble to be over.
	troubleGap = 2 * time.Minute
	// lookAgain is when to look again while something is waited for.
	lookAgain = 10 * time.Second
	// named is how many tables a message names.
	named = 10
)

// CopyName is the name of the throw-away Cluster of a Cluster. Where that would be longer than a
// Cluster's name may be, a hash of the name stands for its end.
func CopyName(cluster string) string {
	room := nameLimit - len(suffix)
	if len(cluster) <= room {
		return cluster + suffix
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(cluster))
	hash := fmt.Sprintf("-%08x", sum.Sum32())
	return strings.TrimRight(cluster[:room-len(hash)], "-") + hash + suffix
}

// step is one row of the table: the first whose time has come is done, and no other.
type step struct {
	name string
	when func(*Facts) bool
	do   func(*Facts, *Plan)
}

// steps in their order.
var steps = slices.Concat(before, sampling, restoring)

// before are the steps of a verification that does not run, and what ends one that does.
var before = []step{
	{"leave a Cluster alone that is being deleted", func(f *Facts) bool { return f.Deleted },
		func(*Facts, *Plan) {}},
	{"delete the copy", func(f *Facts) bool { return !f.runs() && f.hasCopy() && !f.Copy.Deleting },
		func(_ *Facts, p *Plan) { p.Delete, p.Wake = true, lookAgain }},
	{"wait until the copy is gone", func(f *Facts) bool { return !f.runs() && f.hasCopy() },
		func(_ *Facts, p *Plan) { p.Wake = lookAgain }},
	{"refuse", func(f *Facts) bool { return f.isWanted() && f.refusal() != nil },
		func(f *Facts, p *Plan) { f.begin(p); f.fail(p, f.refusal()) }},
	{"wait", func(f *Facts) bool { return f.isWanted() && f.WaitsFor() != nil }, (*Facts).wait},
	{"begin", (*Facts).isWanted, (*Facts).begin},
	{"rest", func(f *Facts) bool { return !f.runs() }, (*Facts).rest},

	{"give up: it takes too long", (*Facts).isTooLate, func(f *Facts, p *Plan) {
		f.fail(p, no(core.VerifyTooLong, "it did not end within %s; last known: %s. Raise "+
			"spec.backup.verify.maxDuration if a restore takes that long", f.limit(),
			cmp.Or(f.Record.Message, "nothing")))
	}},
	{"give up: the name is another's", func(f *Facts) bool { return f.Copy.Exists && f.Copy.Foreign },
		func(f *Facts, p *Plan) { f.fail(p, f.nameTaken()) }},
	{"give up: the copy was refused", func(f *Facts) bool { return !f.Copy.Exists && f.Copy.Refused != "" },
		func(f *Facts, p *Plan) {
			f.fail(p, no(core.VerifyCopyRefused, "the Cluster %s, into which the backup is restored, is refused: %s",
				CopyName(f.Cluster), f.Copy.Refused))
		}},
	{"give up: the copy is gone", (*Facts).isCopyGone, func(f *Facts, p *Plan) {
		f.fail(p, no(core.VerifyCopyGone, "the Cluster %s was deleted before the verification had ended",
			CopyName(f.Cluster)))
	}},
}

// restoring are the steps once the copy can be made.
var restoring = []step{
	{"wait until an old copy is gone", func(f *Facts) bool { return f.Copy.Deleting },
		func(_ *Facts, p *Plan) { p.Wake = lookAgain }},
	{"make the copy", func(f *Facts) bool { return !f.Copy.Exists },
		func(_ *Facts, p *Plan) { p.Create, p.Wake = true, lookAgain }},
	{"note the copy", func(f *Facts) bool { return f.Record.Copy == "" },
		func(f *Facts, p *Plan) { p.Record.Copy, p.Wake = f.Copy.UID, lookAgain }},
	{"give up: the backups are another Cluster's", func(f *Facts) bool { return f.Copy.NotOurs },
		func(f *Facts, p *Plan) {
			f.fail(p, no(core.VerifyNotOurs, "no backup of this Cluster is in this place of the store, and none can "+
				"be: %s. Give spec.backup.objectStore another path, and take a backup; the data of the other Cluster "+
				"are kept", f.Copy.Blocked))
		}},
	{"give up: the restore does not go on", (*Facts).isStuck, func(f *Facts, p *Plan) {
		f.fail(p, no(core.VerifyRestoreFailed, "the restore has made no progress since %s: %s",
			f.Trouble.Since.UTC().Format(time.RFC3339), f.Copy.Blocked))
	}},
	{"restore", func(f *Facts) bool { return f.Copy.Writable.IsZero() }, (*Facts).restore},
	{"measure the restore", func(f *Facts) bool { return f.Record.Phase == Restoring }, func(f *Facts, p *Plan) {
		p.Record.Phase, p.Record.Message = Checking, "the restored server takes writes; its tables are checked"
		p.Record.RestoreTook = max(f.Copy.Writable.Sub(f.Copy.Created), 0)
		p.Wake = time.Second
	}},
	{"order the check", func(f *Facts) bool { return !f.Check.Asked }, (*Facts).order},
	{"check", func(f *Facts) bool { return !f.Check.Done && f.Check.Error == "" }, (*Facts).check},
	{"give up: not all could be checked", func(f *Facts) bool { return f.Check.Error != "" }, func(f *Facts, p *Plan) {
		f.note(p)
		f.fail(p, no(core.VerifyNotChecked, "%s", f.Check.Error))
	}},
	{"find damage", func(f *Facts) bool { return len(f.Check.Damaged) > 0 }, func(f *Facts, p *Plan) {
		f.note(p)
		f.fail(p, no(core.VerifyDamaged, "%d of %d restored tables are damaged: %s",
			len(f.Check.Damaged), f.Check.Tables, list(f.Check.Damaged)))
	}},
	{"find differences", func(f *Facts) bool { differ, _, _ := f.compare(); return len(differ) > 0 },
		func(f *Facts, p *Plan) {
			f.note(p)
			differ, compared, _ := f.compare()
			p.Record.Compared = compared
			f.fail(p, no(core.VerifyDiffer,
				"the restored rows of %d of %d tables are not those that the Cluster had at the same GTIDs: %s",
				len(differ), compared, list(differ)))
		}},
	{"find a newer backup unusable", func(f *Facts) bool { return len(f.unusable()) > 0 }, (*Facts).missNewest},
	{"succeed", func(*Facts) bool { return true }, (*Facts).succeed},
}

// Decide tells what is next. Repeated after a crash at any point it goes on: what was begun is
// in the record, and the copy itself tells how far it is.
func Decide(f Facts) Plan {
	f.noteTrouble()
	plan := Plan{Record: f.Record, Trouble: f.Trouble, TakeRequest: f.Request != "" && !f.isAsked()}
	if !f.Copy.Exists && !f.runs() {
		plan.Record.Copy = ""
	}
	for _, s := range steps {
		if s.when(&f) {
			s.do(&f, &plan)
			break
		}
	}
	return plan
}

// Name is the step that is next, for tests and logs.
func Name(f Facts) string {
	f.noteTrouble()
	for _, s := range steps {
		if s.when(&f) {
			return s.name
		}
	}
	return ""
}

func (f *Facts) runs() bool    { return f.Record.Phase.Runs() }
func (f *Facts) hasCopy() bool { return f.Copy.Exists && !f.Copy.Foreign }

// isWanted reports whether a verification is to begin.
func (f *Facts) isWanted() bool { return !f.runs() && (f.isAsked() || !f.Slot.IsZero()) }

// isAsked reports whether a human asks for a verification, and it is not the one that was begun
// last: of that one only the request is left to be taken off.
func (f *Facts) isAsked() bool {
	begun := f.Record.Phase != "" && f.Record.Phase != Pending
	return f.Request != "" && !(begun && f.Request == f.Record.Request)
}

func (f *Facts) limit() time.Duration { return cmp.Or(f.Limit, DefaultLimit) }
func (f *Facts) isTooLate() bool      { return f.Now.Sub(f.Record.Started) > f.limit() }

func (f *Facts) isCopyGone() bool {
	return f.Record.Copy != "" && (!f.Copy.Exists || f.Copy.Deleting || f.Copy.UID != f.Record.Copy)
}

// isStuck reports whether the restore has been refused for long.
func (f *Facts) isStuck() bool {
	return f.Copy.Writable.IsZero() && f.Copy.Blocked != "" && f.Trouble.Seen.Sub(f.Trouble.Since) >= stuckLimit
}

// noteTrouble keeps since when the copy cannot restore.
func (f *Facts) noteTrouble() {
	switch {
	case !f.runs() || !f.Copy.Writable.IsZero():
		f.Trouble = Trouble{}
	case f.Copy.Blocked == "":
	case f.Trouble.Since.IsZero() || f.Now.Sub(f.Trouble.Seen) > troubleGap:
		f.Trouble = Trouble{Since: f.Now, Seen: f.Now}
	default:
		f.Trouble.Seen = f.Now
	}
}

// Refusal is why a verification does not begin, or has failed.
type Refusal struct {
	Reason  core.Reason
	Message string
}

func no(reason core.Reason, format string, args ...any) *Refusal {
	return &Refusal{reason, fmt.Sprintf(format, args...)}
}

// refusal is why a verification cannot be, now or later.
func (f *Facts) refusal() *Refusal {
	switch {
	case !f.HasStore:
		return no(core.VerifyNoStore,
			"spec.backup.objectStore is missing: there are no backups to verify; add it, and take a backup")
	case f.Copy.Exists && f.Copy.Foreign:
		return f.nameTaken()
	}
	return nil
}

func (f *Facts) nameTaken() *Refusal {
	return no(core.VerifyNameTaken, "a Cluster %s exists that was not made to verify backups, so the operator leaves "+
		"it alone: delete it if nobody needs it, and request the verification again", CopyName(f.Cluster))
}

// WaitsFor is what a verification waits for; nil when it can begin.
func (f *Facts) WaitsFor() *Refusal {
	switch {
	case !f.HasData:
		return no(core.VerifyNotYet, "the Cluster has no data yet: the verification begins when it has")
	case f.BackupRunning != "":
		return no(core.VerifyBackupRuns, "the Backup %s runs: the verification begins after it", f.BackupRunning)
	}
	return nil
}

// wait tells what is waited for. A time of the schedule is not given away meanwhile: it is
// not asked for before nothing hinders it.
func (f *Facts) wait(p *Plan) {
	h := f.WaitsFor()
	p.Record = Record{Phase: Pending, Reason: h.Reason, Message: h.Message, Request: f.Request,
		LastSucceeded: f.Record.LastSucceeded}
	p.Wake = lookAgain
}

func (f *Facts) begin(p *Plan) {
	p.Record = Record{Phase: TakingSample, Request: f.Request, Slot: f.Slot, Started: f.Now,
		LastSucceeded: f.Record.LastSucceeded,
		Message:       "rows of the Cluster are to be summed up, and compared with the restored ones"}
	p.TakeRequest, p.Wake = f.Request != "", time.Second
	p.Events = append(p.Events, core.Event{Reason: core.ReasonVerificationStarted,
		Message: fmt.Sprintf("the newest backup is restored into the throw-away Cluster %s, to see whether that works",
			CopyName(f.Cluster))})
}

func (f *Facts) rest(p *Plan) {
	if p.Record.Phase == Pending {
		p.Record.Phase, p.Record.Ended = Failed, f.Now
		p.Record.Message = "the request was taken back before the verification began"
	}
}

func (f *Facts) restore(p *Plan) {
	p.Record.Message, p.Wake = cmp.Or(f.Copy.Blocked, f.Copy.Doing, p.Record.Message), lookAgain
}

func (f *Facts) order(p *Plan) {
	p.Order, p.Wake = true, lookAgain
	if f.Check.Unreachable != "" {
		p.Record.Message = "the restored instance does not answer: " + f.Check.Unreachable
	}
}

func (f *Facts) check(p *Plan) {
	f.note(p)
	p.Record.Message = fmt.Sprintf("%d of %d tables are checked; %s is next",
		f.Check.Checked, f.Check.Tables, cmp.Or(f.Check.Table, "none"))
	p.Order, p.Wake = true, lookAgain
}

// note keeps what the instance has said.
func (f *Facts) note(p *Plan) {
	r := &p.Record
	r.BackupID, r.RestoredTo, r.RestoredToTime = f.Check.BackupID, f.Check.RestoredTo, f.Check.RestoredToTime
	r.Tables, r.Checked = f.Check.Tables, f.Check.Checked
}

// noteSound keeps what the instance has said of data in which nothing was found, and returns
// of how many tables the rows were compared, or why of none.
func (f *Facts) noteSound(p *Plan) (compared int, not string) {
	f.note(p)
	_, compared, not = f.compare()
	p.Record.Compared, p.Record.NotCompared = compared, not
	return compared, not
}

func (f *Facts) succeed(p *Plan) {
	compared, not := f.noteSound(p)
	r := &p.Record
	r.Phase, r.Reason, r.Ended, r.LastSucceeded, r.Sample = Succeeded, "", f.Now, f.Now, nil
	r.Message = fmt.Sprintf("backup %s was restored in %s, and its %d tables are sound",
		cmp.Or(r.BackupID, "?"), r.RestoreTook.Round(time.Second), r.Tables)
	if compared > 0 {
		r.Message += fmt.Sprintf("; %d of them were compared with the Cluster, and have its rows", compared)
	} else {
		r.Message += "; no rows were compared: " + cmp.Or(not, "there are none")
	}
	if lost := passed(f.Copy.PassedOver); len(lost) > 0 { // of no other reason: see unusable
		r.Message += "; passed over, because a failover lost some of what they hold: " + list(lost)
	}
	p.Delete, p.Wake = true, lookAgain
	p.Events = append(p.Events, core.Event{Reason: core.ReasonVerificationSucceeded, Message: r.Message})
}

// fail ends the verification. The copy goes: what was found is in the message.
func (f *Facts) fail(p *Plan, why *Refusal) {
	r := &p.Record
	r.Phase, r.Reason, r.Message, r.Ended, r.Sample = Failed, why.Reason, why.Message, f.Now, nil
	p.Create, p.Order, p.Delete, p.Wake = false, false, f.hasCopy(), lookAgain
	p.Events = []core.Event{{Warning: true, Reason: core.ReasonVerificationFailed,
		Message: fmt.Sprintf("the backups could not be verified: %s: %s", why.Reason, why.Message)}}
}

// list names some findings.
func list(all []Finding) string {
	var out []string
	for _, one := range all[:min(len(all), named)] {
		out = append(out, one.Name+" ("+one.Message+")")
	}
	if len(all) > named {
		out = append(out, fmt.Sprintf("and %d more", len(all)-named))
	}
	return strings.Join(out, "; ")
}
