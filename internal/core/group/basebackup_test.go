package group

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/core/backup"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/sim/judge"
)

// backedUp is a backup of a member.
type backedUp struct {
	archive.Stored
	of      string
	content map[int]int
	// ahead: the member held what the primary had not executed yet. late: its data are of a later epoch
	// than it names, for the primary changed while it was taken, or the status was set back; the group's
	// numbers are judged by the epoch. behind: it lacked what had expired already.
	ahead, late, behind bool
}

func (b *backedUp) base() archive.Base {
	return archive.Base{Epoch: b.Epoch, End: b.End, Time: b.Ended}
}

// running is a backup that is being taken: its data are of the moment in which nothing is left to wait,
// and it is stored a while later.
type running struct {
	backedUp
	data *instance // that it was begun of
	wait int
	upTo int
}

// donor is the product's choice, by what the operator knows.
func (a *archiving) donor() *instance {
	s := &a.s.cluster.Status
	if s.Group == nil {
		return nil
	}
	var all []backup.Instance
	for _, m := range s.Group.Members {
		in := a.s.get(m.Instance)
		isIn := in != nil && m.State == core.MemberOnline
		all = append(all, backup.Instance{Name: m.Instance, Primary: isIn && m.Role == core.MemberPrimary,
			Replica: isIn && m.Role == core.MemberSecondary,
			Ready:   isIn && in.pod.Exists && in.pod.Ready && in.answers() && !in.deaf,
			Excluded: slices.Contains(s.Diverged, m.Instance) || slices.Contains(s.Fenced, m.Instance) ||
				s.Group.WentOnWithout(m.Instance)})
	}
	wish := backup.Wish{Primary: a.rng.IntN(4) == 0, Instances: len(all), Undecided: s.Group.IsUndecided()}
	chosen, _ := backup.Donor(all, wish)
	return a.s.get(chosen.Name)
}

// backUp begins a backup now and then, and goes on with the one that is being taken.
func (a *archiving) backUp() {
	r := a.running
	if r == nil {
		in := a.donor()
		if a.rng.IntN(6) > 0 || in == nil || in.data != core.DataPopulated || !in.errant.IsEmpty() {
			return
		}
		a.taken++
		a.running = &running{backedUp: backedUp{Stored: archive.Stored{ID: fmt.Sprintf("backup-%03d", a.taken),
			Epoch: max(1, a.s.cluster.Status.Epoch), Begin: in.executed}, of: in.name}, data: in,
			wait: a.rng.IntN(4), upTo: a.rng.IntN(4)}
		return
	}
	in := a.s.get(r.of)
	switch isWhole := in == r.data && in.answers() && in.executed.Contains(r.Begin); {
	case r.wait >= 0 && (!isWhole || !in.errant.IsEmpty()):
		a.running = nil
	case r.wait > 0:
		r.wait--
	case r.wait == 0:
		primary := a.s.get(a.s.primary)
		r.wait, r.Point, r.End, r.content = -1, a.s.now.Add(a.ahead[0]), in.executed, maps.Clone(in.content)
		r.late = max(a.s.cluster.Status.Epoch, a.s.lastEpoch()) > r.Epoch
		r.ahead = primary == nil || !primary.executed.Contains(in.executed)
	case r.upTo > 0:
		r.upTo--
	default:
		r.Ended, r.Written = a.s.now.Add(a.ahead[0]), a.s.now
		no := a.archived().Select(r.base(), archive.Target{}).Refusal
		r.behind = no != nil && no.Reason == archive.PartMissing
		a.backups, a.running = append(a.backups, r.backedUp), nil
	}
}

// store is what is archived, for who looks at it.
func (a *archiving) archived() *judge.Store {
	s := &judge.Store{Content: func(key archive.Key) []judge.Written { return a.parts[key].list }}
	for _, epoch := range slices.Sorted(maps.Keys(a.branches)) {
		s.Branches = append(s.Branches, a.branches[epoch])
	}
	for _, p := range a.parts {
		s.Parts = append(s.Parts, p.Part)
	}
	slices.SortFunc(s.Parts, func(a, b archive.Part) int {
		return int(a.Epoch-b.Epoch)<<32 + int(a.Sequence-b.Sequence)
	})
	if a.s.mut.archived != nil {
		a.s.mut.archived(&s.Archive)
	}
	return s
}

// retain takes what may go, by the product's rule, while faults go on, and may be interrupted.
func (a *archiving) retain() {
	h := archive.Holdings{Window: 8 * time.Second, Minimum: 1 + a.rng.IntN(2), Store: a.s.now,
		Local: a.s.now.Add(a.ahead[0])}
	for i := range a.backups {
		h.Bases = append(h.Bases, a.backups[i].Stored)
	}
	removed, why := a.archived().Retain(a.judge, h, a.s.mut.expiry)
	if why != "" {
		a.s.wrong = "archive: " + why
		return
	}
	a.backups = slices.DeleteFunc(a.backups, func(b backedUp) bool { return slices.Contains(removed.Bases, b.ID) })
	for _, key := range removed.Parts {
		delete(a.parts, key)
	}
}

// logFile is how many entries a binary log gets.
const logFile = 3

func logName(at int) string { return fmt.Sprintf("binlog.%06d", at) }

// logsAt are the first entries of an instance's binary logs, of all that there ever were.
func logsAt(in *instance) (all []int) {
	for at := in.dropped; at < in.logEnd(); at += logFile - at%logFile {
		all = append(all, at)
	}
	return all
}

func logsOf(in *instance) (all []archive.Log) {
	for _, at := range logsAt(in) {
		last := min(at+logFile-at%logFile, in.logEnd()) - 1
		all = append(all, archive.Log{Name: logName(at), Written: in.log[last-in.dropped].at})
	}
	return all
}

// purge lets go what is archived and has expired, by the product's rule, and what has expired when the
// volume is full.
func (a *archiving) purge(in *instance, k *shipper) {
	if !k.begun || len(in.log) == 0 {
		return
	}
	logs, needed := logsOf(in), ""
	for i, at := range logsAt(in) {
		if k.from >= at && (k.from < at+logFile-at%logFile || i == len(logs)-1) {
			needed = logName(at)
		}
	}
	isFull := !a.calm && a.rng.IntN(12) == 0
	if isFull || a.s.mut.purgesUnarchived { // the server's own rule
		needed = logs[len(logs)-1].Name
	}
	name := archive.Purge(logs, needed, a.expire, a.clock(in))
	if lost := a.drop(in, name); !lost.IsEmpty() && !isFull {
		a.s.wrong = fmt.Sprintf("archive: %s purges %s, which is not archived", in.name, lost)
	}
}

// purgeByItself is the server's own rule, where an instance archives nothing and may go by it. One that
// the Cluster names as primary, and that takes writes since it archived, goes on with what it has not.
func (a *archiving) purgeByItself(in *instance) {
	if !in.pod.Exists || !in.answers() || in.m.view == nil || !a.holds[in.name] {
		return
	}
	f := a.s.facts(in)
	f.WritableEpoch = agent.MemberWrites(f.Server, in.m.seen)
	if a.holds[in.name] = f.WritableEpoch != 0; len(in.log) == 0 || a.server.IntN(6) > 0 || !f.MayPurge(true) {
		return
	}
	logs := logsOf(in)
	name := archive.Purge(logs, logs[len(logs)-1].Name, a.expire, a.clock(in))
	lost := a.drop(in, name)
	if a.holds[in.name] && in.m.view.CurrentPrimary == in.name && !in.m.view.Group.Excluded && !lost.IsEmpty() {
		a.s.wrong = fmt.Sprintf("archive: %s archives later, and purges %s by itself, which is not archived", in.name,
			lost)
	}
}

// drop takes all logs before one, "" for none, and gives what was not archived of them.
func (a *archiving) drop(in *instance, name string) (lost gtid.Set) {
	if name == "" {
		return lost
	}
	n := 0
	for logName(in.dropped+n) != name {
		n++
	}
	for _, t := range in.log[:n] {
		in.purged = in.purged.Union(t.id)
		if t.number > 0 && !a.stored[in.content[t.number]] && !a.spared.Contains(t.id) && !a.gaps.Contains(t.id) {
			lost = lost.Union(t.id)
		}
	}
	in.log, in.dropped = slices.Clone(in.log[n:]), in.dropped+n
	return lost
}
