package core

import "testing"

// TestWhatAModePromises holds the table of modes to docs/durability.md.
func TestWhatAModePromises(t *testing.T) {
	keeps := map[DurabilityMode]bool{DurabilityPreferred: true, DurabilityRequired: true, DurabilityQuorum: true}
	for mode, want := range map[DurabilityMode]struct{ awaits, lowers, forEver, onReplicas bool }{
		DurabilityAsync:     {},
		DurabilityPreferred: {awaits: true, lowers: true},
		DurabilityRequired:  {awaits: true},
		DurabilityQuorum:    {awaits: true, forEver: true, onReplicas: true},
	} {
		if mode.KeepsRelayLogs() != keeps[mode] {
			t.Errorf("%s: relay logs are kept: %t", mode, mode.KeepsRelayLogs())
		}
		if mode.Awaits() != want.awaits || mode.LowersAcks() != want.lowers || mode.WaitsForEver() != want.forEver ||
			mode.IsOnReplicas() != want.onReplicas {
			t.Errorf("%s: awaits %t, lowers %t, for ever %t, on replicas %t; want %v",
				mode, mode.Awaits(), mode.LowersAcks(), mode.WaitsForEver(), mode.IsOnReplicas(), want)
		}
	}
}

// TestWhenCommitsStarve holds that they do only where a source waits for ever, for more than are attached.
func TestWhenCommitsStarve(t *testing.T) {
	waits := SemiSync{SourceEnabled: true, Blocks: true, Acks: 2}
	off, fallsBack := waits, waits
	off.SourceEnabled, fallsBack.Blocks = false, false
	for name, c := range map[string]struct {
		s        SemiSync
		attached int
		want     bool
	}{
		"too few":      {waits, 1, true},
		"enough":       {waits, 2, false},
		"off":          {off, 0, false},
		"falls back":   {fallsBack, 0, false},
		"not a source": {SemiSync{}, 0, false},
	} {
		if got := c.s.Starves(c.attached); got != c.want {
			t.Errorf("%s: starves %t", name, got)
		}
	}
}

// TestHowManyAcknowledgementsAreWished holds W to the table in docs/durability.md.
func TestHowManyAcknowledgementsAreWished(t *testing.T) {
	for name, c := range map[string]struct {
		d    Durability
		want map[int]int // by the number of members
	}{
		"async":              {Durability{Mode: DurabilityAsync, Min: 2}, map[int]int{1: 0, 3: 0}},
		"preferred":          {Durability{Mode: DurabilityPreferred}, map[int]int{1: 0, 2: 1, 5: 1}},
		"required, at least": {Durability{Mode: DurabilityRequired, Min: 2}, map[int]int{2: 1, 3: 2, 5: 2}},
		"required, at most":  {Durability{Mode: DurabilityRequired, Min: 3, Max: 2}, map[int]int{2: 1, 5: 2}},
		"quorum": {Durability{Mode: DurabilityQuorum}, map[int]int{1: 0, 2: 1, 3: 1,
			4: 2, 5: 2, 7: 3, 9: 4}},
		"quorum, at least": {Durability{Mode: DurabilityQuorum, Min: 3}, map[int]int{3: 2, 5: 3, 9: 4}},
		"quorum, at most":  {Durability{Mode: DurabilityQuorum, Max: 1}, map[int]int{5: 2}},
	} {
		for n, want := range c.want {
			if got := c.d.Wished(n); got != want {
				t.Errorf("%s: %d of %d members are to acknowledge, want %d", name, got, n, want)
			}
		}
	}
}

// TestHowManyPositionsAnElectionMustKnow: an election has to know all positions but as many as replicas
// certainly hold each acknowledged write.
func TestHowManyPositionsAnElectionMustKnow(t *testing.T) {
	quorum := Durability{Mode: DurabilityQuorum}
	for name, c := range map[string]struct {
		d        Durability
		n        int
		p        *Promotion
		need     int
		mayElect bool
	}{
		"asynchronous": {Durability{}, 3, &Promotion{RequiredAcks: 1}, 0, true},
		"required may fall back": {Durability{Mode: DurabilityRequired}, 3,
			&Promotion{RequiredAcks: 1}, 0, true},
		"quorum of three":                {quorum, 3, &Promotion{RequiredAcks: 1, LosslessSince: 1}, 2, true},
		"quorum of five":                 {quorum, 5, &Promotion{RequiredAcks: 2, LosslessSince: 1}, 3, true},
		"quorum of five, that grew":      {quorum, 5, &Promotion{RequiredAcks: 1, LosslessSince: 1}, 4, true},
		"quorum of three, that was five": {quorum, 3, &Promotion{RequiredAcks: 2, LosslessSince: 1}, 2, true},
		"quorum that did not wait yet":   {quorum, 3, &Promotion{LosslessSince: 1}, 0, false},
		"quorum that waited not always":  {quorum, 3, &Promotion{RequiredAcks: 1}, 0, false},
		"asynchronous, after a promise":  {Durability{}, 3, &Promotion{RequiredAcks: 1, LosslessSince: 1}, 2, true},
		"preferred, after a promise": {Durability{Mode: DurabilityPreferred}, 5,
			&Promotion{RequiredAcks: 2, LosslessSince: 1}, 3, true},
		"quorum without a promotion": {quorum, 3, nil, 2, true},
		"quorum of one":              {quorum, 1, &Promotion{LosslessSince: 1}, 0, false},
		"quorum, more acks than by itself": {Durability{Mode: DurabilityQuorum, Min: 3}, 5, &Promotion{RequiredAcks: 3,
			LosslessSince: 2}, 2, true},
	} {
		if need, mayElect := c.d.Positions(c.n, c.p); need != c.need || mayElect != c.mayElect {
			t.Errorf("%s: %d positions, %t; want %d, %t", name, need, mayElect, c.need, c.mayElect)
		}
	}
}
