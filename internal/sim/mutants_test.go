package sim

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// mutant is a mistake that must be found. Seed was the first from 0 on that found it
// when it was recorded: a change of the code under test may move it.
type mutant struct {
	name string
	mutation
	seed int
}

// eachReport changes the reports of an observation.
func eachReport(o *core.Observation, change func(in *core.Instance, r *core.Report)) {
	for i := range o.Instances {
		in := &o.Instances[i]
		edit := func(f core.Fact[core.Report]) core.Fact[core.Report] {
			r, known := f.Get()
			if !known {
				return f
			}
			if r.Server != nil {
				s := *r.Server
				if s.Replication != nil {
					c := *s.Replication
					s.Replication = &c
				}
				r.Server = &s
			}
			change(in, &r)
			return core.Known(r, f.NotBefore(), f.Received())
		}
		in.Report = edit(in.Report)
		var earlier []core.Fact[core.Report]
		for _, f := range in.Earlier {
			earlier = append(earlier, edit(f))
		}
		in.Earlier = earlier
	}
}

func holderIn(o *core.Observation) (*core.Instance, *core.Promotion) {
	p := o.Cluster.Status.Promotion
	if p == nil {
		return nil, nil
	}
	return o.Instance(p.Instance), p
}

// unfound stands for a seed that is not known yet.
const unfound = -1

// within is how many seeds it may take to find a mistake.
const within = 40000

// TestMutants: each mistake is found by the seed that is recorded for it, or by one
// of the first few, should a change have moved it. With MUTANTS=n the first n seeds
// are searched for each, and what finds it is told.
func TestMutants(t *testing.T) {
	limit, searches := 300, os.Getenv("MUTANTS") != ""
	if n, err := strconv.Atoi(os.Getenv("MUTANTS")); err == nil {
		limit = n
	}
	for _, m := range mutants() {
		if only := os.Getenv("MUTANT"); !strings.Contains(m.name, only) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			switch {
			case !searches && m.seed >= within:
				t.Errorf("seed %d is beyond the first %d", m.seed, within)
			case !searches && m.seed != unfound && m.isFoundBy(uint64(m.seed)) != nil:
				return
			}
			for seed := range uint64(limit) {
				if v := m.isFoundBy(seed); v != nil {
					if !searches {
						t.Errorf("seed %d finds it no more, seed %d does: write that here and into docs/simulation.md",
							m.seed, seed)
					}
					t.Logf("%s: found by seed %d: %v", m.name, seed, v)
					return
				}
			}
			t.Errorf("not found within %d seeds; search with MUTANTS=%d MUTANT=%q", limit, within, m.name)
		})
	}
}

// isFoundBy is what goes wrong in a run with the mistake, and not without it.
func (m *mutant) isFoundBy(seed uint64) *Violation {
	found := play(seed, chooseFaults(seed), &m.mutation, nil, false).Violation
	if found == nil || play(seed, chooseFaults(seed), &mutation{}, nil, false).Violation != nil {
		return nil
	}
	return found
}

// withoutView is a word that does not tell how far its instance saw the status get.
func withoutView(f core.Fact[core.Report]) core.Fact[core.Report] {
	r, known := f.Get()
	if !known {
		return f
	}
	r.ViewEpoch = 0
	return core.Known(r, f.NotBefore(), f.Received())
}

func forgetsPromise(f *agent.Facts) { f.NoWritesBelow = 0 }

// asksNobody has it open again as if its mysqld had lived.
func asksNobody(f *agent.Facts) { f.Elsewhere = f.Elsewhere.Opens(f.Now) }

// believesInQuorum takes the promotion for one under which nothing is acknowledged alone.
func believesInQuorum(f *agent.Facts) {
	if f.Cluster == nil {
		return
	}
	c := *f.Cluster
	if c.Promotion != nil {
		p := *c.Promotion
		p.LosslessSince = 1
		c.Promotion = &p
	}
	f.Cluster = &c
}

// isAwaited reports whether a name in a promotion is that of a Pod that nobody has seen yet.
func isAwaited(pod string) bool { return strings.HasPrefix(pod, core.PodAwaited) }

// isEffect reports whether an effect is of a kind.
func isEffect[E core.Effect](e core.Effect) bool {
	_, is := e.(E)
	return is
}

func mutants() []mutant {
	return slices.Concat(mutantsOfProof(), mutantsOfElection(), mutantsOfCounting(), mutantsOfAgent(),
		mutantsOfShells(), mutantsOfCache(), mutantsOfArchive(), mutantsOfRetention(), mutantsOfSizes())
}

// mutantsOfProof are what an operator may mistake for a proof that the old primary takes no writes.
func mutantsOfProof() []mutant {
	return []mutant{
		{name: "a primary is taken to go by a lease that was switched on since", seed: 357,
			mutation: mutation{Observe: func(_ *world, o *core.Observation) {
				if p := o.Cluster.Status.Promotion; p != nil {
					leased := *p
					leased.Leased = o.Cluster.PrimaryLease
					o.Cluster.Status.Promotion = &leased
				}
			}}},
		{name: "a promotion without a proof", seed: 0, mutation: mutation{Observe: func(_ *world, o *core.Observation) {
			if in, _ := holderIn(o); in != nil && !in.Report.Known() {
				pod, _ := in.Pod.Get()
				pod.Terminated = pod.Exists
				in.Pod = core.Known(pod, o.Now, o.Now)
			}
		}}},
		{name: "unknown is taken for down", seed: 0, mutation: mutation{Observe: func(_ *world, o *core.Observation) {
			in, p := holderIn(o)
			if in == nil || in.Report.Known() {
				return
			}
			if r, known := in.Latest.Get(); known {
				r.State, r.Server, r.WritableEpoch, r.NoWritesBelow = core.Stopped, nil, 0, p.Epoch+1
				in.Report = core.Known(r, o.Now, o.Now)
			}
		}}},
		{name: "a withheld vouch counts at once", seed: 182,
			mutation: mutation{Observe: func(_ *world, o *core.Observation) {
				eachReport(o, func(_ *core.Instance, r *core.Report) {
					if r.Withheld != nil {
						r.Withheld = &core.Withheld{Below: r.Withheld.Below, Seconds: 3600}
					}
				})
			}}},
		{name: "who cannot be asked counts as one that acknowledges nothing", seed: 565,
			mutation: mutation{Observe: func(_ *world, o *core.Observation) {
				_, p := holderIn(o)
				for i := range o.Instances {
					in := &o.Instances[i]
					if r, known := in.Latest.Get(); known && !in.Report.Known() && p != nil && in.Name != p.Instance {
						r.Withheld = &core.Withheld{Below: p.Epoch + 1, Seconds: 3600}
						in.Latest = core.Known(r, in.Latest.NotBefore(), in.Latest.Received())
					}
				}
			}}},
		{name: "any Pod answers an awaited one", seed: 9935,
			mutation: mutation{Observe: func(_ *world, o *core.Observation) {
				in, p := holderIn(o)
				if in == nil {
					return
				}
				if pod, _ := in.Pod.Get(); pod.Exists {
					seen := *p
					seen.Pods = slices.DeleteFunc(slices.Clone(p.Pods), isAwaited)
					o.Cluster.Status.Promotion = &seen
				}
			}}},
	}
}

// mutantsOfElection are what an operator may mistake in whom it promotes, and as what.
func mutantsOfElection() []mutant {
	return []mutant{
		{name: "election by what is executed only", seed: 346,
			mutation: mutation{Observe: func(_ *world, o *core.Observation) {
				eachReport(o, func(_ *core.Instance, r *core.Report) {
					if r.Server != nil && r.Server.Replication != nil {
						r.Server.Replication.Retrieved = gtid.Set{}
					}
				})
			}}},
		{name: "no read order", seed: 0, mutation: mutation{Observe: func(_ *world, o *core.Observation) {
			p := o.Cluster.Status.Promotion
			for i := range o.Instances {
				in := &o.Instances[i]
				r, known := in.Report.Get()
				if !known || p == nil || in.Name != p.Instance {
					continue
				}
				in.Report, in.Earlier = core.Known(r, o.Now, o.Now), slices.Clone(in.Earlier)
				for j, f := range in.Earlier {
					before, _ := f.Get()
					in.Earlier[j] = core.Known(before, o.Now, f.Received())
				}
			}
		}}},
		{name: "an election with too few positions known", seed: 45,
			mutation: mutation{Observe: func(_ *world, o *core.Observation) {
				if o.Cluster.Durability.Mode == core.DurabilityQuorum {
					o.Cluster.Durability.Mode = core.DurabilityRequired
				}
			}}},
		{name: "divergence is not noticed", seed: 4, mutation: mutation{Observe: func(_ *world, o *core.Observation) {
			eachReport(o, func(_ *core.Instance, r *core.Report) { r.Errant = gtid.Set{} })
			o.Cluster.Status.Diverged = nil
			for i := range o.Instances {
				o.Instances[i].Earlier = nil
			}
		}}},
		{name: "whoever was promoted is waited for, seeing or not", seed: 4,
			mutation: mutation{Observe: func(_ *world, o *core.Observation) { o.Carried.Progress = core.Progress{} }}},
		{name: "an old promotion's epoch is given again", seed: 0,
			mutation: mutation{Plan: func(o *core.Observation, plan *core.Plan) {
				before, after := o.Cluster.Status.Promotion, plan.Status.Promotion
				if before != nil && after.Epoch > before.Epoch {
					after.Epoch, plan.Status.Epoch = before.Epoch, before.Epoch
				}
			}}},
	}
}

// mutantsOfCounting are what an operator may mistake in who is counted, and in what they acknowledge.
func mutantsOfCounting() []mutant {
	return []mutant{
		{name: "acknowledgements are counted on and not asked for", seed: 172,
			mutation: mutation{Plan: func(o *core.Observation, plan *core.Plan) {
				if p := plan.Status.Promotion; p != nil && o.Cluster.Durability.Mode == core.DurabilityQuorum {
					p.RequiredAcks = o.Cluster.Durability.Wished(len(o.Instances))
					plan.Effects = slices.DeleteFunc(plan.Effects, isEffect[core.SetAcks])
				}
			}}},
		{name: "a surplus instance is removed at once", seed: 6,
			mutation: mutation{Plan: func(o *core.Observation, plan *core.Plan) {
				if n := len(o.Instances); n > o.Cluster.Wanted && plan.Status.Diagnosis == core.PrimaryHealthy &&
					o.Instances[n-1].Name != plan.Status.Promotion.Instance {
					plan.Effects = append(plan.Effects, core.DeleteInstance{Instance: o.Instances[n-1].Name})
				}
			}}},
		{name: "a quorum is cut that was never asked for", seed: 2,
			mutation: mutation{Observe: func(_ *world, o *core.Observation) {
				if p := o.Cluster.Status.Promotion; p != nil {
					again := *p
					again.LosslessSince, again.RequiredAcks = 1, max(1, p.RequiredAcks)
					o.Cluster.Status.Promotion, o.Cluster.Durability.Mode = &again, core.DurabilityQuorum
				}
			}}},
		{name: "the primary is not closed to give its data", seed: 6,
			mutation: mutation{Plan: func(_ *core.Observation, plan *core.Plan) {
				if op := plan.Status.Operation; op != nil && op.Kind == core.OperationGiveData {
					plan.Status.Operation = nil
					plan.Effects = slices.DeleteFunc(plan.Effects, isEffect[core.Demote])
				}
			}}},
		{name: "instances that never had data are counted", seed: 12,
			mutation: mutation{Observe: func(_ *world, o *core.Observation) {
				if o.Cluster.Status.Promotion != nil {
					o.Cluster.Status.Members = slices.Clone(o.Cluster.Status.InstanceNames)
				}
			}}},
		{name: "a member that lost its data is counted no more", seed: 720,
			mutation: mutation{Observe: func(_ *world, o *core.Observation) {
				s := &o.Cluster.Status
				s.Members = slices.DeleteFunc(slices.Clone(s.Members), func(name string) bool {
					in := o.Instance(name)
					return in != nil && (in.SaysEmpty() || in.IsGone()) && name != s.Promotion.Instance
				})
			}}},
	}
}

func mutantsOfAgent() []mutant {
	return []mutant{
		{name: "a primary opens and asks nobody what it has lost", seed: 46, mutation: mutation{Facts: asksNobody}},
		{name: "a second bootstrap", seed: 56, mutation: mutation{Facts: func(f *agent.Facts) {
			c := f.Cluster
			if c != nil && c.Promotion != nil && c.Promotion.Instance == f.Me && f.Data == core.DataEmpty {
				again, p := *c, *c.Promotion
				p.Proof, p.Epoch, p.PodUID = core.ProofBootstrap, 1, f.PodUID
				again.Established, again.Epoch, again.Promotion = false, 1, &p
				f.Cluster, f.NoWritesBelow = &again, 0
			}
		}}},
		{name: "promoted before all that was received is applied", seed: 129,
			mutation: mutation{Decision: func(f *agent.Facts, d *agent.Decision) {
				for _, a := range d.Actions {
					if _, waits := a.(agent.WaitApplied); waits && d.Reason == "Promoting" {
						p := f.Cluster.Promotion
						d.Actions = []agent.Action{agent.AcquireLease{Epoch: p.Epoch},
							agent.BecomePrimary{Epoch: p.Epoch, Acks: p.RequiredAcks}}
						return
					}
				}
			}}},
		{name: "it acknowledges and vouches before it is counted", seed: 0,
			mutation: mutation{Facts: func(f *agent.Facts) {
				if f.Cluster != nil && len(f.Cluster.Members) > 0 {
					c := *f.Cluster
					c.Members = append(slices.Clone(c.Members), f.Me)
					f.Cluster = &c
				}
			}}},
		{name: "the promise does not bind", seed: 3, mutation: mutation{Facts: forgetsPromise}},
		{name: "acknowledgements are forgotten by a restart in place", seed: 679,
			mutation: mutation{Decision: func(_ *agent.Facts, d *agent.Decision) {
				for i, a := range d.Actions {
					if become, ok := a.(agent.BecomePrimary); ok {
						become.Acks = 0
						d.Actions[i] = become
					}
				}
			}}},
		{name: "the tail is cut whatever was promised", seed: 2,
			mutation: mutation{TailAlways: true, Facts: believesInQuorum}},
		{name: "a crashed primary that hears nobody recovers", seed: 45,
			mutation: mutation{Facts: func(f *agent.Facts) {
				if f.Cluster != nil && f.Cluster.Promotion != nil {
					f.Word = &agent.Word{At: f.Now, Epoch: f.Cluster.Epoch, Instance: f.Cluster.Promotion.Instance}
				}
			}}},
		{name: "a diverged replica acknowledges", seed: 998,
			mutation: mutation{Decision: func(f *agent.Facts, d *agent.Decision) {
				if d.Reason == "Diverged" && (f.Replicating != f.Cluster.Promotion.Instance ||
					f.Server.Replication != nil && !f.Server.Replication.IORunning) {
					d.Actions = []agent.Action{agent.Follow{Instance: f.Cluster.Promotion.Instance}}
				} else if d.Reason == "Diverged" {
					d.Actions = nil
				}
			}}},
	}
}

func mutantsOfShells() []mutant {
	return []mutant{
		{name: "the status is written whatever was written meanwhile", seed: 21057,
			mutation: mutation{WriteAnyVersion: true}},
		{name: "a late order lowers the acknowledgements", seed: 277, mutation: mutation{AcksUnnumbered: true}},
		{name: "the promise is forgotten by a restart", seed: 443, mutation: mutation{ForgetFenced: true}},
		{name: "the promise is told before it holds", seed: 1362, mutation: mutation{PromiseBeforeItHolds: true}},
		// That writes go on alone is not enough: the manager does not say what it promised
		// before it holds, and its worker would end writes that nobody permits.
		{name: "the promise is written and told, and not kept", seed: 1,
			mutation: mutation{PromiseOnly: true, PromiseBeforeItHolds: true, Facts: forgetsPromise}},
		{name: "a promise for a volume that another manager uses", seed: 380,
			mutation: mutation{PromiseWithoutLock: true}},
		// The worker would stop receiving a moment after the order, by the promise on the volume.
		{name: "a freeze that is not carried out", seed: 3,
			mutation: mutation{FreezeOnPaper: true, Facts: func(f *agent.Facts) { f.NoReceivingBelow = 0 }}},
		{name: "waiting sessions are released to demote", seed: 1, mutation: mutation{ReleaseWaiters: true}},
		{name: "a lossless primary is stopped politely", seed: 280, mutation: mutation{StopPolitely: true}},
		{name: "relay logs are not durable under quorum", seed: 552, mutation: mutation{RelayNotDurable: true}},
		{name: "an instance goes by a status that was set back", seed: 27, mutation: mutation{BelievesThePast: true}},
		{name: "the operator goes by a status that was set back", seed: 11,
			mutation: mutation{Observe: func(_ *world, o *core.Observation) {
				for i := range o.Instances {
					in := &o.Instances[i]
					in.Report, in.Latest = withoutView(in.Report), withoutView(in.Latest)
				}
			}}},
		{name: "numbers that were cut off are given again", seed: 699, mutation: mutation{NumbersAgain: true}},
		{name: "a clock that stood still is measured by", seed: 1910, mutation: mutation{StandstillBelieved: true}},
		{name: "clocks run at very different speeds", seed: 320, mutation: mutation{ClocksDrift: true}},
		{name: "a promise not to receive is forgotten by a restart", seed: 317,
			mutation: mutation{ForgetFrozen: true}},
		{name: "a vouch is given though it is withheld", seed: 3, mutation: mutation{VouchWhileWithheld: true}},
		{name: "whoever asks is vouched for", seed: 3, mutation: mutation{VouchForAnybody: true}},
		{name: "a primary does not isolate itself", seed: 2, mutation: mutation{NoSelfFencing: true,
			Facts: func(f *agent.Facts) { f.LeaseRenewed = f.Now }}},
		{name: "the lease is not waited for", seed: 11, mutation: mutation{LeaseTTLIgnored: true}},
		{name: "the lease is seized though it was renewed", seed: 634, mutation: mutation{SeizeAnyVersion: true}},
		{name: "a hung mysqld renews its lease", seed: 24, mutation: mutation{HungRenews: true}},
	}
}

func mutantsOfCache() []mutant {
	return []mutant{
		{name: "the page cache of another boot is taken for the same", seed: 9, mutation: mutation{AnyBoot: true}},
		{name: "the page cache of another mount is taken for the same", seed: 297, mutation: mutation{AnyMount: true}},
		{name: "a volume's word that it could not write is not heard", seed: 169,
			mutation: mutation{WriteErrorsIgnored: true}},
		{name: "that it may lack something is forgotten by a second start", seed: 2457,
			mutation: mutation{LackForgotten: true}},
		{name: "relay logs are said to be flushed, and are not", seed: 857, mutation: mutation{MarkWithoutFlush: true}},
		{name: "a position that may lack something counts as known", seed: 265,
			mutation: mutation{Observe: func(_ *world, o *core.Observation) {
				eachReport(o, func(_ *core.Instance, r *core.Report) { r.MayLack = false })
			}}},
		{name: "it is whole by what it held before it followed", seed: 6329,
			mutation: mutation{Facts: func(f *agent.Facts) {
				if p := f.Primary; f.MayLack && p != nil {
					before := *p
					before.Logged, before.WritableEpoch, before.At = p.Mine, p.Epoch, f.Now
					f.Primary = &before
				}
			}}},
	}
}
