package group

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

// mutation is a mistake that the simulation must find.
type mutation struct {
	observe func(*core.Observation)
	plan    func(*core.Observation, *core.Plan)
	facts   func(*agent.Facts)
	// rejoins: mysqld is not kept from coming back by itself. admits: everybody may speak
	// with a member.
	rejoins, admits bool
	// archives changes what an instance goes by when it archives, and writer what it writes.
	archives func(*instance, *agent.Cluster)
	writer   func(*archive.Writer)
	// archived changes what is found in the archive, holdings what retention goes by, and expired what it
	// says may go.
	archived func(*archive.Archive)
	holdings func(*archive.Holdings)
	expired  func(*archive.Expiry)
	// purgesUnarchived: binary logs that have expired go, archived or not. tellsUnflushed: the primary
	// tells a client of a commit that it has not flushed.
	purgesUnarchived, tellsUnflushed bool
	// keepsLineage: whoever is told to go on does not note it before. sameLineage: that the group went on
	// without somebody counts for nothing when its volumes are adopted.
	keepsLineage, sameLineage bool
}

// expiry is what may go.
func (m mutation) expiry(h archive.Holdings) archive.Expiry {
	if m.holdings != nil {
		m.holdings(&h)
	}
	e := archive.Expire(h)
	if m.expired != nil {
		m.expired(&e)
	}
	return e
}

// foundBy are seeds that find what is found late, and are tried first: none is left out for it.
var foundBy = map[string]uint64{
	"who recovers in a group counts as in none":                                     2033169,
	"who was left out joins as others do":                                           555,
	"a recovery that was ordered is taken for one that came about":                  5884,
	"the primary is believed to hold whatever a member holds":                       289,
	"a recovery keeps what anybody held":                                            2590,
	"the archive knows of no recovery":                                              444,
	"whoever is primary by its own word archives, in the last epoch it was told of": 2079,
	"a recovery is forgotten whatever became of it":                                 444,
	"who is left alone gives numbers again without a note":                          13924,
	"a later recovery tells nothing of who was left out before":                     7299,
	"what is lost counts as accepted":                                               844,
	"what was seen is not missed when a quorum is forced":                           844,
	"a primary that hangs is let be":                                                25,
	"a primary that hangs is killed whoever is left":                                32,
	"a primary that hangs is said to take writes":                                   11,
	"that the status was set back is not noticed":                                   29,
	"what a status that was set back has forgotten counts as archived":              61904,
	"whoever is out of the group when its status is mended joins as others do":      84,
	"mysqld of who was left out comes back by itself":                               98,
	"members are fenced whatever becomes of the majority":                           39,
	"one of which nothing is known is not missed after an outage":                   44,
	"whose history is undecided lets its binary logs go":                            294,
	"who was left out is judged by its position alone":                              58,
	"the group is rebooted as often as it takes":                                    65,
	"a part tells of the last commit when the first was":                            59,
	"who sees its group go on without a majority thinks nothing of it":              6793,
}

// TestMutants: each mistake is found within so many seeds.
func TestMutants(t *testing.T) {
	const within = 3000
	all := mutants()
	maps.Copy(all, recordMutants())
	maps.Copy(all, rebootMutants())
	maps.Copy(all, memberMutants())
	maps.Copy(all, outageMutants())
	maps.Copy(all, archiveMutants())
	maps.Copy(all, gapMutants())
	maps.Copy(all, hungMutants())
	maps.Copy(all, setBackMutants())
	maps.Copy(all, adoptionMutants())
	for name, mut := range all {
		t.Run(name, func(t *testing.T) {
			for n := range uint64(within) + 1 {
				seed := n - 1
				if n == 0 {
					seed = foundBy[name]
				}
				why, _ := play(seed, mut)
				if why == "" {
					continue
				}
				if rules, _ := play(seed, mutation{}); rules == "" {
					t.Logf("found by seed %d: %s", seed, why)
					return
				}
			}
			t.Errorf("not found within %d seeds", within)
		})
	}
}

func mutants() map[string]mutation {
	return map[string]mutation{
		"who recovers in a group counts as in none": {observe: func(o *core.Observation) {
			o.Instances = slices.Clone(o.Instances)
			for i := range o.Instances {
				r, known := o.Instances[i].Report.Get()
				if !known || !r.Server.HasView() || r.Server.Group.State != core.MemberRecovering {
					continue
				}
				server := *r.Server
				server.Group = &core.GroupView{State: core.MemberOffline}
				r.Server = &server
				o.Instances[i].Report = core.Known(r, o.Now, o.Now)
			}
		}},
		"members are fenced whatever becomes of the majority": {plan: func(o *core.Observation, p *core.Plan) {
			for i := range o.Instances {
				in := &o.Instances[i]
				if pod, _ := in.Pod.Get(); pod.FencingRequested && !slices.Contains(p.Status.Fenced, in.Name) {
					p.Status.Fenced = append(p.Status.Fenced, in.Name)
				}
			}
		}},
		"a surplus member is removed at once": {plan: func(o *core.Observation, p *core.Plan) {
			if n := len(o.Instances); n > o.Cluster.Wanted && p.Status.Group.Bootstrapped {
				p.Effects = append(p.Effects, core.DeleteInstance{Instance: o.Instances[n-1].Name})
			}
		}},
		"the target stays when the group elects another": {plan: func(o *core.Observation, p *core.Plan) {
			if before := o.Cluster.Status; before.TargetPrimary != "" && before.CurrentPrimary != "" {
				p.Status.TargetPrimary = before.TargetPrimary
			}
		}},
		"whoever says that it is primary is believed": {plan: func(o *core.Observation, p *core.Plan) {
			for i := range o.Instances {
				if v, known := viewOf(&o.Instances[i]); known && v.Role == core.MemberPrimary {
					p.Effects = append(p.Effects, core.RouteWrites{Instance: o.Instances[i].Name})
				}
			}
		}},
		"what a surplus member holds is compared with nobody": {observe: func(o *core.Observation) {
			if len(o.Instances) > o.Cluster.Wanted {
				surplus := &o.Instances[len(o.Instances)-1]
				r, known := surplus.Report.Get()
				if known && r.Server != nil {
					again := *r.Server
					again.Executed = gtid.Set{}
					r.Server = &again
					surplus.Report = core.Known(r, o.Now, o.Now)
				}
			}
		}},
	}
}

// recordMutants are mistakes in what the status records of the group.
func recordMutants() map[string]mutation {
	return map[string]mutation{
		"who was left out is judged by its position alone": {plan: func(_ *core.Observation, p *core.Plan) {
			again := *p.Status.Group
			again.LeftOut = slices.Clone(again.LeftOut)
			for i := range again.LeftOut {
				again.LeftOut[i].Admitted = true
			}
			p.Status.Group = &again
		}},
		"a later recovery tells nothing of who was left out before": {plan: func(o *core.Observation, p *core.Plan) {
			if o.Cluster.Status.Group == nil || p.Status.Group == nil {
				return
			}
			again := *p.Status.Group
			again.LeftOut = slices.Clone(again.LeftOut)
			for i, l := range again.LeftOut {
				if was, is := o.Cluster.Status.Group.LeftOutOf(l.Instance); is && !was.Admitted {
					again.LeftOut[i].Held = was.Held
				}
			}
			p.Status.Group = &again
		}},
		"a recovery that was ordered is taken for one that came about": {observe: func(o *core.Observation) {
			if g := o.Cluster.Status.Group; g != nil {
				again := *g
				again.ViewID = "v:" + again.ViewID
				o.Cluster.Status.Group = &again
			}
		}},
		"who was given data still counts as new": {plan: func(_ *core.Observation, p *core.Plan) {
			again := *p.Status.Group
			again.New = p.Status.InstanceNames
			p.Status.Group = &again
		}, observe: func(o *core.Observation) {
			if g := o.Cluster.Status.Group; g != nil && g.Bootstrapped {
				again := *g
				again.New, again.ViewMax = o.Cluster.Status.InstanceNames, 0
				o.Cluster.Status.Group = &again
			}
		}},
		"that the group was made is forgotten": {plan: func(o *core.Observation, p *core.Plan) {
			if !p.Status.Group.HasQuorum {
				again := *p.Status.Group
				again.Bootstrapped = false
				p.Status.Group = &again
			}
		}},
	}
}

// rebootMutants are mistakes of who forces a quorum, or reboots the group.
func rebootMutants() map[string]mutation {
	unknownIsGone := func(o *core.Observation) {
		isUnheard := func(in core.Instance) bool { return !in.Report.Known() }
		o.Instances = slices.DeleteFunc(slices.Clone(o.Instances), isUnheard)
	}
	return map[string]mutation{
		"the majority is counted of those who can be asked": {observe: func(o *core.Observation) {
			unknownIsGone(o)
			if g := o.Cluster.Status.Group; g != nil {
				again := *g
				again.ViewMax = 0
				o.Cluster.Status.Group = &again
			}
		}},
		"whoever cannot be asked is not missed when the group is rebooted": {observe: func(o *core.Observation) {
			if o.Cluster.Group.ForceQuorum {
				unknownIsGone(o)
			}
		}},
		"the group is rebooted without a human's word": {observe: func(o *core.Observation) {
			again := *o.Cluster.Group
			again.ForceQuorum = true
			o.Cluster.Group = &again
		}, plan: func(_ *core.Observation, p *core.Plan) {
			for _, e := range p.Effects {
				if r, reboots := e.(core.RebootGroup); reboots { // and without the look at who holds what
					p.Effects = append(p.Effects, core.RebootGroup{Instance: "c-1", Epoch: r.Epoch})
				}
			}
		}},
		"the group is rebooted from whoever comes first": {plan: func(o *core.Observation, p *core.Plan) {
			for i, e := range p.Effects {
				if r, reboots := e.(core.RebootGroup); reboots {
					p.Effects[i] = core.RebootGroup{Instance: o.Instances[0].Name, Epoch: r.Epoch}
				}
			}
		}},
		"whoever comes last goes on alone when a quorum is forced": {plan: func(_ *core.Observation, p *core.Plan) {
			for i, e := range p.Effects {
				if f, forces := e.(core.ForceMembers); forces {
					members := strings.Split(f.Members, ",")
					last := members[len(members)-1]
					p.Effects[i] = core.ForceMembers{Instance: last, Members: last, Epoch: f.Epoch}
				}
			}
		}},
	}
}

// memberMutants are mistakes of the managers, and of mysqld's settings.
func memberMutants() map[string]mutation {
	admitted := func(f *agent.Facts) {
		if f.Cluster != nil && f.Cluster.Group != nil {
			again := *f.Cluster
			group := *f.Cluster.Group
			group.Excluded, group.ExcludedOthers = false, nil
			again.Group = &group
			f.Cluster = &again
		}
	}
	return map[string]mutation{
		"who was left out joins as others do":                     {facts: admitted, admits: true},
		"mysqld of who was left out comes back by itself":         {rejoins: true, admits: true},
		"the primary is believed to hold whatever a member holds": {facts: positionOfAll},
		"the group is made by whoever has lost sight of it":       {facts: forgetsTheGroup},
		"a member that was told to leave stays, and says it has": {
			facts: func(f *agent.Facts) { f.NoReceivingBelow = 0 }},
	}
}

// positionOfAll: whatever this instance holds, the primary is said to hold it.
func positionOfAll(f *agent.Facts) {
	if f.Primary != nil {
		again := *f.Primary
		again.Executed = again.Executed.Union(again.Mine)
		f.Primary = &again
	}
}

// forgetsTheGroup: who was told to begin once, and is in no group, begins again.
func forgetsTheGroup(f *agent.Facts) {
	if f.Cluster != nil && f.Cluster.Group != nil && f.Cluster.Group.Bootstrapper == f.Me {
		again := *f.Cluster
		group := *f.Cluster.Group
		group.Bootstrapped = false
		again.Group = &group
		f.Cluster, f.Member.Of = &again, core.Lineage{}
	}
}
