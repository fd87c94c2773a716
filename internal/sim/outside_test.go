package sim

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// TestFollowing plays clusters that begin with the data of a server outside, follow it under all faults, and take
// over from it. SEEDS says how many.
func TestFollowing(t *testing.T) {
	seeds := 150
	if n, err := strconv.Atoi(os.Getenv("SEEDS")); err == nil {
		seeds = n
	}
	cover := Coverage{}
	for seed := uint64(FirstOutside); seed < FirstOutside+uint64(seeds); seed++ {
		if r := Run(seed, cover); r.Violation != nil {
			t.Errorf("seed %d: %v\n%s", seed, r.Violation, strings.Join(Shrink(r).Story, "\n"))
			return
		}
	}
	for what, name := range map[string]string{"proof": string(core.ProofTakenOver),
		"diagnosis": string(core.PrimaryFollows), "truth": "taken over"} {
		if cover[what][name] == 0 {
			t.Errorf("not reached: %s %s", what, name)
		}
	}
}

// mutantsOfFollowing are mistakes about a primary that follows. Their seeds are counted from FirstOutside.
func mutantsOfFollowing() []mutant {
	return []mutant{
		{name: "it takes over although something is missing", seed: 19, mutation: mutation{Observe: nothingMissing}},
		{name: "it takes over by what the server said before the wish", seed: 73,
			mutation: mutation{Observe: func(_ *world, o *core.Observation) {
				o.Cluster.Generation = 0
			}}},
		{name: "a primary that follows takes writes", seed: 0,
			mutation: mutation{Decision: func(_ *agent.Facts, d *agent.Decision) {
				for i, a := range d.Actions {
					if become, is := a.(agent.BecomeFollower); is {
						d.Actions[i] = agent.BecomePrimary{Epoch: become.Epoch}
					}
				}
			}}},
		{name: "one that has more of the server has diverged", seed: 140,
			mutation: mutation{Facts: func(f *agent.Facts) {
				if c := f.Cluster; c != nil && c.Promotion.FollowsServer() && c.Promotion.Instance != f.Me {
					again, p := *c, *c.Promotion
					p.Follows = ""
					again.Promotion, f.Cluster = &p, &again
				}
			}}},
	}
}

// nothingMissing has the operator believe that the primary holds all that the server outside has executed.
func nothingMissing(_ *world, o *core.Observation) {
	for i := range o.Instances {
		in := &o.Instances[i]
		r, known := in.Report.Get()
		if !known || r.Source == nil {
			continue
		}
		said := *r.Source
		said.Executed, said.Problem, said.Generation = gtid.Set{}, "", max(1, o.Cluster.Generation)
		r.Source = &said
		in.Report = core.Known(r, in.Report.NotBefore(), in.Report.Received())
	}
}

// TestMutantsOfFollowing plays the run that finds each, or says which does.
func TestMutantsOfFollowing(t *testing.T) {
	for _, m := range mutantsOfFollowing() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if m.isFoundBy(FirstOutside+uint64(m.seed)) != nil {
				return
			}
			for seed := range uint64(400) {
				if v := m.isFoundBy(FirstOutside + seed); v != nil {
					t.Fatalf("seed %d finds it no more, seed %d does: write that here (%v)", m.seed, seed, v)
				}
			}
			t.Error("not found within 400 seeds")
		})
	}
}
