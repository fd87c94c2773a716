package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/async"
	"cnmsql.co/internal/observed"
)

var readAt = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// gist is what a plan decides, without the names of transactions.
func gist(p *core.Plan) string {
	s := &p.Status
	out := fmt.Sprintf("%s %s %s %v %d %v %v %v %t\n", s.Diagnosis, s.Phase, s.State, s.TargetPrimary, s.Epoch,
		s.Diverged, s.Broken, s.Durable, p.Again)
	if op := s.Operation; op != nil {
		out += fmt.Sprintf("%s %s %s %s\n", op.Kind, op.Step, op.From, op.To)
	}
	if g := s.Promotion; g != nil {
		out += fmt.Sprintf("%s %d %s %d %d %d %d %v %v\n", g.Instance, g.Epoch, g.Proof, g.RequiredAcks,
			g.LosslessSince, g.Size, g.RequiredGTID.Count(), g.Pods, g.Ended)
	}
	for _, e := range p.Effects {
		out += e.String() + "\n"
	}
	for _, e := range p.Events {
		out += string(e.Reason) + "\n"
	}
	return out
}

// TestWhatWasSeenIsToldWithoutLoss: what is read back leads to the same decision.
func TestWhatWasSeenIsToldWithoutLoss(t *testing.T) {
	told := 0
	check := func(_ *world, o *core.Observation) {
		if told++; told%97 != 0 {
			return
		}
		text := observed.Write(o)
		again, err := observed.Read(text, readAt)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		want, got := async.Decide(*o), async.Decide(again)
		if gist(&want) != gist(&got) {
			t.Fatalf("decided\n%s\nand of what was told\n%s\n%s", gist(&want), gist(&got), text)
		}
		if twice := observed.Write(&again); twice != text {
			t.Fatalf("told\n%s\nand told again\n%s", text, twice)
		}
	}
	for seed := range uint64(60) {
		faults := chooseFaults(seed)
		for i := range faults {
			if faults[i].Kind == "a wall clock jumps" { // times of two clocks are told as of one
				faults[i].Kind = "mysqld crashes"
			}
		}
		play(seed, faults, &mutation{Observe: check}, nil, false)
	}
	if told < 10000 {
		t.Errorf("only %d decisions were made", told)
	}
}

// TestAViolationBecomesAStory: a mistake is found, shrunk and told in the language of
// core/async's scripts; the story, run by the code without the mistake, decides
// otherwise. (With -v it is printed; one stands in core/async/testdata/found.txt.)
func TestAViolationBecomesAStory(t *testing.T) {
	for _, m := range mutants() {
		if m.name != "an old promotion's epoch is given again" {
			continue
		}
		r := play(uint64(m.seed), chooseFaults(uint64(m.seed)), &m.mutation, nil, false)
		if r.Violation == nil {
			t.Fatalf("seed %d finds it no more; see TestMutants", m.seed)
		}
		small := shrink(r, &m.mutation)
		if len(small.Faults) > len(r.Faults) || small.Violation == nil {
			t.Fatalf("shrunk from %d to %d faults: %v", len(r.Faults), len(small.Faults), small.Violation)
		}
		var o core.Observation
		otherwise := false
		datadriven.RunTestFromString(t, small.Script, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "observed":
				var err error
				if o, err = observed.Read(d.Input, readAt); err != nil {
					t.Fatal(err)
				}
			case "decide":
				before, after := o.Cluster.Status.Promotion, async.Decide(o).Status.Promotion
				otherwise = otherwise || after.Instance != before.Instance && after.Epoch > before.Epoch
			default:
				t.Fatalf("the script language has no %q", d.Cmd)
			}
			return d.Expected
		})
		if !otherwise || !strings.HasPrefix(small.Script, "# ") {
			t.Errorf("the story does not show that a new epoch is given without the mistake:\n%s", small.Script)
		}
		t.Log(small.Script)
		return
	}
	t.Error("there is no such mutant")
}
