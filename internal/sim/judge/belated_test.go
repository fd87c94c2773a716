package judge

import (
	"math/rand/v2"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

const (
	former = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:"
	second = time.Second
)

func at(seconds time.Duration) time.Time { return time.Unix(1000, 0).Add(seconds).UTC() }

// storeOf is an archive in which the primary of epoch 5 committed 4, and maybe more, at such times, and stored that
// late. The next one, which held so much of it when it began its branch, committed 4 to 6 in seconds 8 to 10.
func storeOf(held string, late ...time.Duration) *Store {
	set := func(numbers string) gtid.Set { return gtid.MustParse(former + numbers) }
	content := map[archive.Key][]Written{}
	s := &Store{Content: func(key archive.Key) []Written { return content[key] }}
	s.Branches = []archive.Branch{
		{Epoch: 5, Numbers: archive.OwnNumbers, ServerUUID: former[:36]},
		{Epoch: 6, After: 5, Start: set("1-6"), Held: set(held), Numbers: archive.OwnNumbers}}
	for _, p := range []struct {
		epoch, sequence int64
		before, numbers string
		times           []time.Duration
	}{
		{5, 1, "", "1 2 3", []time.Duration{1 * second, 2 * second, 3 * second}},
		{5, 2, "1-3", "4 5 6"[:2*len(late)-1], late},
		{6, 1, "1-3", "4 5 6", []time.Duration{8 * second, 9 * second, 10 * second}},
	} {
		out := archive.Part{Epoch: p.epoch, Sequence: p.sequence, First: at(p.times[0]),
			Last: at(p.times[len(p.times)-1]), Transactions: int64(len(p.times))}
		if p.before != "" {
			out.Before = set(p.before)
		}
		after := out.Before
		for i, when := range p.times {
			id := set(p.numbers[2*i : 2*i+1])
			content[out.Key()] = append(content[out.Key()], Written{
				Transaction: archive.Transaction{ID: id, Committed: at(when)}, After: after})
			out.GTIDs, after = out.GTIDs.Union(id), after.Union(id)
		}
		s.Parts = append(s.Parts, out)
	}
	return s
}

// TestWhatIsStoredLateIsDatedByTheNextPrimary holds that the judge wants no refusal of a backup with what the
// former primary stored late, to a time at which the next one had committed that.
func TestWhatIsStoredLateIsDatedByTheNextPrimary(t *testing.T) {
	base := archive.Base{Epoch: 6, End: gtid.MustParse(former + "1-4"), Time: at(8 * second)}
	for held, wants := range map[string]bool{"1-3": false, "1-4": true} {
		s := storeOf(held, 20*second)
		if got := s.HoldsLater(base, at(9*second)); got != wants {
			t.Errorf("the next one found %s: holds later: %t", held, got)
		}
		latest := s.Select(base, archive.Target{})
		if latest.Refusal != nil {
			t.Fatal(latest.Refusal)
		}
		later := func(at time.Time) (may, must bool) {
			must = s.HoldsLater(base, at)
			return must, must
		}
		for seed := range uint64(20) {
			why := s.CheckTargets(rand.New(rand.NewPCG(seed, 0)), base, latest.Plan, later)
			if why != "" {
				t.Fatalf("the next one found %s: %s", held, why)
			}
		}
	}
}

// TestWhatARecoveryGaveUpIsDatedByTheNextPrimary holds that the judge wants nothing in a restore to a time because the
// former primary had committed it by then, where a recovery is noted that tells of it as lost.
func TestWhatARecoveryGaveUpIsDatedByTheNextPrimary(t *testing.T) {
	for name, recoveries := range map[string][]core.GroupRecovery{
		"none":                       nil,
		"it had all":                 {{Epoch: 6, Held: gtid.MustParse(former + "1-6")}},
		"it may not have had 4 to 6": {{Epoch: 6, Held: gtid.MustParse(former + "1-3")}},
		"an earlier one of epoch 5":  {{Epoch: 5, Held: gtid.MustParse(former + "1-3")}},
		"it had all, and then less": {{Epoch: 6, Held: gtid.MustParse(former + "1-6")},
			{Epoch: 6, Held: gtid.MustParse(former + "1-4")}},
	} {
		s := storeOf("1-3", 4*second, 5*second, 6*second)
		s.Branches[1].Recoveries = recoveries
		base := archive.Base{Epoch: 5}
		latest := s.Select(base, archive.Target{})
		if latest.Refusal != nil {
			t.Fatal(latest.Refusal)
		}
		no := func(time.Time) (may, must bool) { return false, false }
		for seed := range uint64(40) {
			if why := s.CheckTargets(rand.New(rand.NewPCG(seed, 0)), base, latest.Plan, no); why != "" {
				t.Errorf("%s: %s", name, why)
				break
			}
		}
	}
}
