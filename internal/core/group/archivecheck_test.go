package group

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/sim/judge"
)

// archiveLate is after how many looks something is in the archive at the latest, where nothing is wrong:
// six for the RPO, and each attempt fails one time in three.
const archiveLate = 30

// owe notes what was acknowledged, and holds against the archive what was so long enough ago, when
// nothing was wrong since.
func (a *archiving) owe() {
	maps.DeleteFunc(a.acked, func(number int, was acknowledged) bool { return a.s.acked[number] != was.what })
	for number, what := range a.s.acked {
		if _, known := a.acked[number]; !known {
			a.acked[number] = acknowledged{what, a.looks}
		}
	}
	k := a.shippers[a.s.primary]
	if a.away || k == nil || !k.begun || !a.s.hasQuorum() || a.writer != a.s.primary {
		a.troubled, a.writer = a.looks, a.s.primary
	}
	if a.looks++; a.looks-a.troubled <= archiveLate {
		return
	}
	survives := a.s.get(a.s.primary).content
	for number, was := range a.acked {
		id := numbered(number)
		if survives[number] == was.what && a.looks-was.at > archiveLate && !a.stored[was.what] &&
			!a.spared.Contains(id) && !a.gaps.Contains(id) {
			a.s.wrong = fmt.Sprintf("archive: %d, number %d, was acknowledged %d looks ago and is not archived",
				was.what, number, a.looks-was.at)
		}
	}
}

// later: a backup holds what was committed after a moment, by the clock of whoever wrote it. What a
// recovery lost may have been archived with another time.
func (a *archiving) later(b *backedUp) judge.Later {
	return func(at time.Time) (may, must bool) {
		for _, p := range a.parts {
			if slices.ContainsFunc(p.list, func(w judge.Written) bool {
				return b.End.Contains(w.ID) && w.Committed.After(at)
			}) {
				return true, false
			}
		}
		return false, false
	}
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
	primary, all := a.s.get(a.s.primary), a.archived()
	if k := a.shippers[primary.name]; k == nil || !k.begun || k.pending != nil || k.at < primary.logEnd() {
		return "archive: the primary " + primary.name + " does not archive in the end: " + a.s.tell()
	}
	for i := range a.backups {
		b := &a.backups[i]
		if why := a.restore(all, b, primary); why != "" {
			a.show()
			return fmt.Sprintf("archive: restored from %s in epoch %d, to the latest: %s", b.of, b.Epoch, why)
		}
	}
	return ""
}

// restore holds what a restore to the latest has against the primary.
func (a *archiving) restore(all *judge.Store, b *backedUp, primary *instance) string {
	isLost := false
	for number, what := range b.content {
		isLost = isLost || primary.content[number] != what
	}
	got := all.Select(b.base(), archive.Target{})
	// What the group was told to go on without counts as lost, also where that has not come about.
	isLost = isLost || !archive.Same(b.End, b.Epoch, a.s.cluster.Status.Group.Recoveries).Contains(b.End)
	if r := got.Refusal; r != nil {
		right := false
		switch r.Reason {
		case archive.BackupNotOnBranch:
			// A branch that the primary begins before it executes what a backup of its epoch or an
			// earlier one holds may hold another transaction under that number.
			right = isLost || b.ahead || b.late
		case archive.ArchiveGap, archive.PartMissing:
			right = b.behind || len(r.Parts) == 0 && r.GTIDs.Subtract(a.gaps).Subtract(a.spared).IsEmpty()
		}
		if !right {
			return "it is refused, and need not be: " + r.Error()
		}
		return ""
	}
	has := map[int]int{}
	maps.Copy(has, b.content)
	for _, w := range all.Replayed(got.Plan) {
		if w.Number > 0 {
			has[w.Number] = w.What
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
	if a.judge.IntN(3) > 0 {
		return ""
	}
	return all.CheckTargets(a.judge, b.base(), got.Plan, a.later(b))
}

func archiveMutants() map[string]mutation {
	return map[string]mutation{
		"whoever is primary by its own word archives, in the last epoch it was told of": {
			archives: func(in *instance, c *agent.Cluster) {
				c.Epoch, c.CurrentPrimary, c.Group.Excluded = in.m.seen, in.name, false
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
		"who is left alone gives numbers again without a note": {plan: hadNobodyElse},
		"a recovery is forgotten whatever became of it": {plan: func(o *core.Observation, p *core.Plan) {
			if before := o.Cluster.Status.Group; before.IsPending() && p.Status.Group.HasQuorum {
				again := *p.Status.Group
				again.Recoveries = again.Recoveries[:len(before.Recoveries)-1]
				p.Status.Group = &again
			}
		}},
		"binary logs that are not archived are purged": {purgesUnarchived: true},
		"whose history is undecided lets its binary logs go": {facts: func(f *agent.Facts) {
			if f.Cluster != nil && f.Cluster.Group != nil {
				again, group := *f.Cluster, *f.Cluster.Group
				again.Group, group.Undecided = &group, false
				f.Cluster = &again
			}
		}},
		"a part tells of the last commit when the first was": {archived: func(a *archive.Archive) {
			for i := range a.Parts {
				a.Parts[i].Last = a.Parts[i].First
			}
		}},
		"retention goes by half the window": {holdings: func(h *archive.Holdings) { h.Window /= 2 }},
		"retention knows of no branch": {holdings: func(h *archive.Holdings) {
			h.Archive.Branches = slices.Clone(h.Archive.Branches)
			for i := range h.Archive.Branches {
				b := &h.Archive.Branches[i]
				b.Start, b.Recoveries = b.Start.Union(gtid.MustParse(groupUUID+":1-100")), nil
			}
		}},
		"the last part of a branch goes, too": {expired: func(e *archive.Expiry) {
			for i := range e.Parts {
				e.Parts[i].Last++
			}
		}},
	}
}

// hadNobodyElse has the status forget that there were other members once.
func hadNobodyElse(_ *core.Observation, p *core.Plan) {
	again := *p.Status.Group
	again.OnlineMax = 0
	p.Status.Group = &again
}

// show tells what is archived.
func (a *archiving) show() {
	for _, epoch := range slices.Sorted(maps.Keys(a.branches)) {
		b := a.branches[epoch]
		a.s.tellf("branch %d of %s, after %d: starts with %s, of which %s is held", epoch, b.Instance, b.After, b.Start,
			b.Held)
		for n := int64(1); a.parts[archive.Key{Epoch: epoch, Sequence: n}] != nil; n++ {
			p := a.parts[archive.Key{Epoch: epoch, Sequence: n}]
			a.s.tellf("  part %d: %s %v, behind %s, without %s", n, p.GTIDs, whats(p.list), p.Before, p.Missing)
		}
	}
}

func whats(list []judge.Written) (all []int) {
	for _, w := range list {
		all = append(all, w.What)
	}
	return all
}
