package async

import (
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// errant returns the transactions that a replica has executed and a writable
// primary has not, from two reports of which the primary's was certainly read
// later; ok is false when there is no such pair. (A replica's set held against
// an older set of the primary shows transactions that were merely replicated
// in between.)
func errant(replica, primary *core.Instance) (gtid.Set, bool) {
	pr, ok := primary.Report.Get()
	if !ok || pr.Server == nil {
		return gtid.Set{}, false
	}
	for _, f := range append([]core.Fact[core.Report]{replica.Report}, replica.Earlier...) {
		r, known := f.Get()
		if known && r.Server != nil && r.Data == core.DataPopulated && primary.Report.ReadAfter(f) {
			return r.Server.Executed.Subtract(pr.Server.Executed), true
		}
	}
	return gtid.Set{}, false
}

// lostTransactions are those of the primary's own server that replicas hold and
// the writable primary does not.
func lostTransactions(o *core.Observation) gtid.Set {
	holder := holderOf(o)
	pr, ok := holder.Report.Get()
	if !ok || pr.Server == nil {
		return gtid.Set{}
	}
	var lost gtid.Set
	others(o, holder.Name, func(in *core.Instance) {
		if extra, ok := errant(in, holder); ok && slices.Contains(extra.Sources(), pr.Server.UUID) {
			lost = lost.Union(extra)
		}
	})
	return lost
}

// judgeReplicas keeps the lists of diverged and broken instances. A verdict of
// divergence, once made while the primary answered, stands until a comparison
// with a writable primary says otherwise: it must survive the primary.
func (d *decision) judgeReplicas() {
	holder := d.holder()
	if holder == nil {
		return
	}
	trusted := d.diagnosis.name == core.PrimaryHealthy || d.diagnosis.name == core.PrimaryTerminating
	others(d.o, holder.Name, func(in *core.Instance) {
		r, known := in.Report.Get()
		if !known {
			return
		}
		if trusted {
			d.judgeDivergence(in, holder)
		}
		if !r.Errant.IsEmpty() {
			d.markDiverged(in.Name, r.Errant)
		}
		if sick := replicationError(r); sick != "" {
			d.s.Broken = append(d.s.Broken, in.Name)
		}
	})
	d.s.Diverged = slices.DeleteFunc(d.s.Diverged, func(name string) bool {
		in := d.o.Instance(name)
		if in == nil {
			return true
		}
		r, known := in.Report.Get()
		return known && (r.Data == core.DataEmpty || r.Data == core.DataScratch) || name == holder.Name
	})
}

func (d *decision) judgeDivergence(in, holder *core.Instance) {
	extra, ok := errant(in, holder)
	switch {
	case !ok:
	case extra.IsEmpty():
		if i := slices.Index(d.s.Diverged, in.Name); i >= 0 {
			d.s.Diverged = slices.Delete(d.s.Diverged, i, i+1)
		}
	default:
		d.markDiverged(in.Name, extra)
	}
}

func (d *decision) markDiverged(name string, extra gtid.Set) {
	if slices.Contains(d.s.Diverged, name) {
		return
	}
	d.s.Diverged = append(d.s.Diverged, name)
	slices.Sort(d.s.Diverged)
	d.warn(core.ReasonDiverged, name+" holds transactions that the primary does not have: "+extra.Abbreviate(10)+
		". It is kept read-only and out of every Service; its data is kept. Decide whether these transactions matter, then delete its Pod and its PersistentVolumeClaim to have it cloned anew")
}

// replicationError is the error with which a replica's replication stopped.
func replicationError(r core.Report) string {
	if r.Server == nil || r.Server.Replication == nil {
		return ""
	}
	rep := r.Server.Replication
	switch {
	case !rep.SQLRunning && rep.SQLError != "":
		return rep.SQLError
	case !rep.IORunning && !rep.IOConnecting && rep.IOError != "":
		return rep.IOError
	case r.NeedsReclone:
		return "the primary has purged transactions that this instance lacks"
	default:
		return ""
	}
}
