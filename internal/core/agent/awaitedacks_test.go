package agent_test

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

func TestAnOrderAboutAcknowledgementsThatComesLateIsRefused(t *testing.T) {
	obeyed := agent.Promised{Acks: 2, Epoch: 4, Order: 7}
	for _, c := range []struct {
		about string
		a     agent.Awaits
		want  string
	}{
		{"an earlier one, for fewer", agent.Awaits{Epoch: 4, Acks: 1, Order: 6}, "StaleOrder"},
		{"an earlier one, for more", agent.Awaits{Epoch: 4, Acks: 3, Order: 6}, "StaleOrder"},
		{"the same once more", agent.Awaits{Epoch: 4, Acks: 2, Order: 7}, ""},
		{"a later one, for fewer", agent.Awaits{Epoch: 4, Acks: 1, Order: 8}, ""},
		{"one of another epoch", agent.Awaits{Epoch: 5, Acks: 1, Order: 1}, ""},
	} {
		got := ""
		if no := obeyed.Refuses(c.a); no != nil {
			got = string(no.Reason)
		}
		if got != c.want {
			t.Errorf("%s: %q", c.about, got)
		}
	}
}

func TestTheLastOrderIsRememberedUntilTheEpochEnds(t *testing.T) {
	p := agent.Promised{Acks: 1, Epoch: 4, Order: 7}
	for _, c := range []struct {
		about string
		a     agent.Awaits
		want  agent.Promised
	}{
		{"an order for more", agent.Awaits{Epoch: 4, Acks: 2, Order: 8}, agent.Promised{Acks: 2, Epoch: 4, Order: 8}},
		{"an order for fewer counts once it is carried out", agent.Awaits{Epoch: 4, Order: 8}, agent.Promised{Acks: 1,
			Epoch: 4, Order: 8}},
		{"the promotion, carried out again", agent.Awaits{Epoch: 4, Acks: 2}, agent.Promised{Acks: 2,
			Epoch: 4, Order: 7}},
		{"another promotion", agent.Awaits{Epoch: 5, Acks: 0}, agent.Promised{Epoch: 5}},
	} {
		if got, _ := p.Before(c.a, false, false); got != c.want {
			t.Errorf("%s: %+v", c.about, got)
		}
	}
}

// TestAPrimaryLooksWhoAcknowledges holds when it does: where another number does, and now and then.
func TestAPrimaryLooksWhoAcknowledges(t *testing.T) {
	at := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	waits := core.SemiSync{SourceEnabled: true, Clients: 2}
	looked := agent.AckLooks{}.After(waits, at)
	failed := looked.Failed(waits, at)
	late := failed
	for range 9 {
		late = late.Failed(waits, at)
	}
	again := late.After(waits, at).Failed(waits, at)
	locked, more, alone := waits, waits, waits
	locked.LocksAccounts, more.Clients, alone.Clients = true, 3, 0
	for name, c := range map[string]struct {
		before agent.AckLooks
		now    core.SemiSync
		after  time.Duration
		want   bool
	}{
		"the first time":                     {agent.AckLooks{}, waits, 0, true},
		"as many as at the last look":        {looked, waits, agent.AckLook - time.Second, false},
		"as many, and that was long ago":     {looked, waits, agent.AckLook, true},
		"one more":                           {looked, more, 0, true},
		"the first has failed":               {failed, waits, agent.AckLookAgain - 1, false},
		"that was a pause ago":               {failed, waits, agent.AckLookAgain, true},
		"one more than when it failed":       {failed, more, 0, true},
		"a second has failed":                {failed.Failed(waits, at), waits, 2*agent.AckLookAgain - 1, false},
		"that was two pauses ago":            {failed.Failed(waits, at), waits, 2 * agent.AckLookAgain, true},
		"many have failed":                   {late, waits, agent.AckLook - 1, false},
		"that was as long ago as any may be": {late, waits, agent.AckLook, true},
		"one has succeeded after them":       {late.After(waits, at), waits, agent.AckLook - 1, false},
		"then one has failed again":          {again, waits, agent.AckLookAgain, true},
		"none is attached":                   {looked, alone, time.Hour, false},
		"an account is being changed":        {looked, locked, time.Hour, false},
		"commits wait for nobody":            {looked, core.SemiSync{Clients: 2}, time.Hour, false},
	} {
		if got := c.before.IsTime(c.now, at.Add(c.after)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
