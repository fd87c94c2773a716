package group

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

// logged is a transaction in a binary log; number is 0 for what was written beside the group.
type logged struct {
	id     gtid.Set
	number int
}

// archiving is the archive of the group, and backups of its members. Its dice are its own, and
// nothing of it moves the rest.
type archiving struct {
	s        *sim
	rng      *rand.Rand
	pace     archive.Pace
	branches map[int64]archive.Branch
	parts    map[archive.Key]*archived
	shippers map[string]*shipper
	backups  []backup
	// gaps is what was purged before it was archived, spared what was there before anything was.
	gaps, spared gtid.Set
	away         bool // the store is
	calm         bool
}

// archived is a part, and what stands under its numbers.
type archived struct {
	archive.Part
	what map[int]int
}

// backup is one of a member.
type backup struct {
	archive.Base
	of      string
	content map[int]int
	// ahead: the member held what the primary had not executed yet.
	ahead bool
}

// shipper archives what a member writes in an epoch, by the rules of the product.
type shipper struct {
	term     archive.Term
	writer   archive.Writer
	start    gtid.Set
	begun    bool
	reader   archive.Reader
	at       int // the entry of the log that is read next
	sequence int64
	pending  *archive.Pending
	what     map[int]int
	trying   bool // to store it; nothing is added any more
}

func newArchiving(s *sim, seed uint64) *archiving {
	a := &archiving{s: s, rng: rand.New(rand.NewPCG(seed, 41)), branches: map[int64]archive.Branch{},
		parts: map[archive.Key]*archived{}, shippers: map[string]*shipper{}}
	a.pace = archive.Pace{RPO: []time.Duration{time.Second, 3 * time.Second}[a.rng.IntN(2)], MaxBytes: 4}
	return a
}

// term is what an instance archives now.
func (a *archiving) term(in *instance) archive.Term {
	if !in.pod.Exists || !in.answers() {
		return archive.Term{}
	}
	server := a.s.server(in)
	view := in.m.view
	if change := a.s.mut.archives; change != nil && view != nil {
		again, group := *view, *view.Group
		again.Group = &group
		view = &again
		change(in, view)
	}
	epoch := view.ArchivesIn(in.name, agent.MemberWrites(server, in.m.seen))
	return archive.TermOf(true, epoch, server, a.pace.RPO)
}

// look has whoever takes writes archive, and takes a backup now and then.
func (a *archiving) look() {
	if !a.calm && a.rng.IntN(20) == 0 {
		a.away = !a.away
	}
	for _, in := range a.s.all {
		term, k := a.term(in), a.shippers[in.name]
		switch {
		case term.IsNone():
			delete(a.shippers, in.name)
			continue
		case k == nil || k.term != term || k.at > len(in.log):
			k = &shipper{term: term, start: in.executed, writer: archive.Writer{Cluster: "uid", Epoch: term.Epoch,
				Instance: in.name, ServerUUID: term.Server, Group: groupUUID}}
			a.shippers[in.name] = k
		}
		// Who is cut off from all others may reach the store.
		if a.calm || !a.away && a.rng.IntN(4) > 0 {
			a.ship(in, k)
		}
	}
	if a.rng.IntN(8) == 0 {
		a.backUp()
	}
}

// backUp takes one of a member that the operator knows to be well.
func (a *archiving) backUp() {
	in := a.s.all[a.rng.IntN(len(a.s.all))]
	if !a.s.hasQuorum() || !a.s.isMember(in.name) || !a.s.reaches(in.name, a.s.primary) || in.state != "" || in.deaf {
		return
	}
	ahead := !a.s.get(a.s.primary).executed.Contains(in.executed)
	a.backups = append(a.backups, backup{archive.Base{Epoch: max(1, a.s.cluster.Status.Epoch), End: in.executed,
		Time: a.s.now}, in.name, maps.Clone(in.content), ahead})
}

// ship goes on with what is due.
func (a *archiving) ship(in *instance, k *shipper) {
	if !k.begun && !a.begin(in, k) {
		return
	}
	for a.collect(in, k) {
		if !a.store(k) {
			return
		}
	}
}

// begin finds or begins the branch; false if that is not to be.
func (a *archiving) begin(in *instance, k *shipper) bool {
	listed := slices.Collect(maps.Keys(a.branches))
	get := func(epoch int64) (archive.Branch, bool, error) {
		b, found := a.branches[epoch]
		return b, found, nil
	}
	b, found, _ := get(k.term.Epoch)
	if !found {
		if _, ended := archive.Superseded(listed, k.term.Epoch); ended {
			return false
		}
		before, follows, _ := archive.Before(listed, k.term.Epoch, get)
		k.writer.Recoveries = in.m.view.Group.Recoveries
		if a.s.mut.writer != nil {
			a.s.mut.writer(&k.writer)
		}
		held := k.writer.Held(before, a.last(before.Epoch), k.start)
		if !follows {
			first := archive.Reader{Seen: k.start}
			first.Enter(in.purged)
			held, a.spared = first.Seen, first.Seen
		}
		b = k.writer.Branch(before, k.start, held, a.s.now)
		a.branches[b.Epoch] = b
	}
	last := a.last(b.Epoch)
	if k.writer.Owner(b.Cluster, b.ServerUUID) != archive.Own {
		return false
	}
	k.begun, k.sequence, k.pending, k.at = true, last.Sequence+1, nil, 0
	k.reader = archive.Reader{Seen: archive.Reached(b, last)}
	k.reader.Enter(in.purged)
	a.gaps = a.gaps.Union(k.reader.Missing)
	return true
}

func (a *archiving) last(epoch int64) (last archive.Part) {
	for key, p := range a.parts {
		if key.Epoch == epoch && key.Sequence > last.Sequence {
			last = p.Part
		}
	}
	return last
}

// collect takes what was executed from the log, and reports whether a part is due.
func (a *archiving) collect(in *instance, k *shipper) (due bool) {
	for ; k.at < len(in.log) && !k.trying; k.at++ {
		t := in.log[k.at]
		if !k.reader.Wants(t.id) {
			continue
		}
		if k.pending == nil {
			k.pending, k.what = k.writer.Pend(k.sequence, &k.reader, a.s.now, a.s.now), map[int]int{}
		}
		if a.pace.IsFull(k.pending) {
			break
		}
		k.pending.Add(t.id, a.s.now, 1)
		if t.number > 0 {
			k.what[t.number] = in.content[t.number]
		}
		k.reader.Pass(t.id)
	}
	return k.pending != nil && (a.calm || k.trying || a.pace.IsDue(k.pending, 0, a.s.now))
}

// store stores the part, or does not: an attempt of which no answer comes may have succeeded.
func (a *archiving) store(k *shipper) bool {
	k.trying = true
	if !a.calm && a.rng.IntN(6) == 0 {
		return false
	}
	p := &archived{k.pending.Part, k.what}
	if there, is := a.parts[p.Key()]; is && !there.GTIDs.Equal(p.GTIDs) {
		a.s.wrong = fmt.Sprintf("archive: %s and %s stand for part %d of epoch %d", there.GTIDs, p.GTIDs, p.Sequence,
			p.Epoch)
		return false
	}
	a.parts[p.Key()] = p
	if !a.calm && a.rng.IntN(6) == 0 {
		return false
	}
	k.sequence, k.pending, k.trying = k.sequence+1, nil, false
	return true
}

// ends: when all has been well for a while, what the primary holds is archived, and restored from
// each backup that holds nothing else.
func (a *archiving) ends(step func(int) string) string {
	a.calm = true
	if !a.s.hasQuorum() {
		return ""
	}
	a.s.write()
	if why := step(10); why != "" {
		return why
	}
	primary, all := a.s.get(a.s.primary), archive.Archive{Branches: slices.Collect(maps.Values(a.branches))}
	for _, p := range a.parts {
		all.Parts = append(all.Parts, p.Part)
	}
	if k := a.shippers[primary.name]; k == nil || !k.begun || k.pending != nil || k.at < len(primary.log) {
		return "archive: the primary " + primary.name + " does not archive in the end: " + a.s.tell()
	}
	for _, b := range a.backups {
		if why := a.restore(all, b, primary); why != "" {
			a.show()
			return fmt.Sprintf("archive: restored from %s in epoch %d, to the latest: %s", b.of, b.Epoch, why)
		}
	}
	return ""
}

// restore holds what a restore to the latest has against the primary.
func (a *archiving) restore(all archive.Archive, b backup, primary *instance) string {
	isLost := false
	for number, what := range b.content {
		isLost = isLost || primary.content[number] != what
	}
	got := archive.Select(all, b.Base, archive.Target{}, nil)
	// What the group was told to go on without counts as lost, also where that has not come about.
	isLost = isLost || !archive.Same(b.End, b.Epoch, a.s.cluster.Status.Group.Recoveries).Contains(b.End)
	if r := got.Refusal; r != nil {
		right := false
		switch r.Reason {
		case archive.BackupNotOnBranch:
			// A branch that the primary begins before it executes what a backup of its epoch or an
			// earlier one holds may hold another transaction under that number.
			right = isLost || b.ahead
		case archive.ArchiveGap, archive.PartMissing:
			right = len(r.Parts) == 0 && r.GTIDs.Subtract(a.gaps).Subtract(a.spared).IsEmpty()
		}
		if !right {
			return "it is refused, and need not be: " + r.Error()
		}
		return ""
	}
	has := map[int]int{}
	maps.Copy(has, b.content)
	for _, step := range got.Plan.Steps {
		part := a.parts[step.Pieces[0].Key()]
		for number, what := range part.what {
			if step.Take.Contains(numbered(number)) {
				has[number] = what
			}
		}
	}
	for number, what := range primary.content {
		if is, has := has[number]; is != what && (has || !a.gaps.Contains(numbered(number))) {
			return fmt.Sprintf("it has %d under the number %d, and the primary %s has %d", is, number, primary.name,
				what)
		}
	}
	for number := range has {
		if _, is := primary.content[number]; !is {
			return fmt.Sprintf("it has the number %d, and the primary %s does not", number, primary.name)
		}
	}
	return ""
}

func archiveMutants() map[string]mutation {
	return map[string]mutation{
		"whoever is primary by its own word archives, in the last epoch it was told of": {
			archives: func(in *instance, c *agent.Cluster) {
				c.Epoch, c.CurrentPrimary, c.Group.Barred = in.m.seen, in.name, false
			}},
		"the archive knows of no recovery": {writer: func(w *archive.Writer) { w.Recoveries = nil }},
		"a recovery keeps what anybody held": {plan: func(o *core.Observation, p *core.Plan) {
			again := *p.Status.Group
			again.Recoveries = slices.Clone(again.Recoveries)
			p.Status.Group = &again
			n := len(again.Recoveries)
			if n == 0 || again.Recoveries[n-1].Epoch != p.Status.Epoch {
				return
			}
			for _, in := range o.Instances {
				if r, known := in.Report.Get(); known && r.Server != nil {
					again.Recoveries[n-1].Held = again.Recoveries[n-1].Held.Union(r.Server.Holds())
				}
			}
		}},
	}
}

// show tells what is archived.
func (a *archiving) show() {
	for _, epoch := range slices.Sorted(maps.Keys(a.branches)) {
		b := a.branches[epoch]
		a.s.tellf("branch %d of %s, after %d: starts with %s, of which %s is held", epoch, b.Instance, b.After, b.Start,
			b.Held)
		for n := int64(1); a.parts[archive.Key{Epoch: epoch, Sequence: n}] != nil; n++ {
			p := a.parts[archive.Key{Epoch: epoch, Sequence: n}]
			a.s.tellf("  part %d: %s %v, behind %s, without %s", n, p.GTIDs, p.what, p.Before, p.Missing)
		}
	}
}
