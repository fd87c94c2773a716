package sim

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"

	"cnmsql.co/internal/core"
)

// Coverage counts what was reached, by kind and name.
type Coverage map[string]map[string]int

func (c Coverage) count(kind, name string) {
	if c == nil {
		return
	}
	k := c[kind]
	if k == nil {
		k = map[string]int{}
		c[kind] = k
	}
	k[name]++
}

// plan counts what a plan says.
func (c Coverage) plan(o *core.Observation, plan *core.Plan) {
	s := &plan.Status
	c.count("diagnosis", string(s.Diagnosis))
	c.count("phase", string(s.Phase))
	if op := s.Operation; op != nil {
		c.count("step", string(op.Kind)+" "+string(op.Step))
	}
	for _, e := range plan.Events {
		kind := "event"
		if e.Warning {
			kind = "warning"
		}
		c.count(kind, string(e.Reason))
	}
	for _, e := range plan.Effects {
		c.count("effect", nameOf(e))
	}
}

func nameOf(v any) string { return reflect.TypeOf(v).Name() }

// Print writes the table.
func (c Coverage) Print(to io.Writer) {
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(to, "%s\n", kind)
		for _, name := range slices.Sorted(maps.Keys(c[kind])) {
			fmt.Fprintf(to, "  %9d  %s\n", c[kind][name], name)
		}
	}
}

// Add adds what another run has reached.
func (c Coverage) Add(other Coverage) {
	for kind, names := range other {
		if c[kind] == nil {
			c[kind] = map[string]int{}
		}
		for name, n := range names {
			c[kind][name] += n
		}
	}
}

// must is what runs have to reach: whatever a decision can be about.
var must = map[string][]string{
	"diagnosis": names(core.DiagnosisNone, core.PrimaryHealthy, core.PrimaryPromoting, core.PrimaryClosed,
		core.PrimaryDemoted, core.MysqldDown, core.PrimaryHung,
		core.PrimaryFenced, core.PrimaryFailed, core.PrimaryIsolated, core.PrimaryFull, core.PrimaryTerminating,
		core.PodGone, core.PrimaryDataLost,
		core.PrimaryLostTransactions, core.PrimaryUnreachable, core.PrimaryUnreachableButReplicasStream,
		core.PrimaryUnreachableReplicasLost),
	"proof": names(core.ProofBootstrap, core.ProofManagerFenced, core.ProofPodTerminated, core.ProofQuorumCut,
		core.ProofLeaseExpired, core.ProofStatusRestored, core.ProofAcceptedLoss),
	"step": {"Switchover CatchUp", "Switchover Demote", "Switchover Promote", "Switchover Return",
		"GiveData Demote", "GiveData Copy", "GiveData Promote", "Failover Delay", "Failover Prove",
		"Failover Elect", "Failover Promote"},
	"standing": standingNames(),
	"api":      {"a claim asks for more", "a growth is refused"},
	"archive": {"the first branch", "a plan", "a gap", "refused: ArchiveGap", "binary logs were purged",
		"an object came late", "a backup expired", "a part expired", "retention ended half-way",
		"a failover between a listing and a removal",
		"the answer of the store was lost", "archiving ended: PartConflict", "all that is owed was looked for",
		"held against the truth at the end"},
}

func names[T ~string](all ...T) []string {
	var out []string
	for _, n := range all {
		out = append(out, string(n))
	}
	return out
}

// Missing lists what runs have to reach and these did not.
func (c Coverage) Missing() []string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(must)) {
		for _, name := range must[kind] {
			if c[kind][name] == 0 {
				out = append(out, kind+" "+name)
			}
		}
	}
	return out
}
