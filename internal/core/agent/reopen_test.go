package agent

import (
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// others are asked what they hold, and say so.
func (s *story) others(key, value string) bool {
	f := s.f
	e := &f.Elsewhere
	switch key {
	case "asked": // now, as was just decided
		d := Decide(f)
		for _, a := range d.Actions {
			if ask, asks := a.(AskHeld); asks {
				*e = e.Asks(ask, f.Now)
				return true
			}
		}
		return false
	case "ended": // all have answered, or had their time
		*e = e.Ends(f.Now)
	case "opened":
		*e = e.Opens(f.Now)
	case "empty":
		h, says := HeldBy(core.Report{Instance: value, Data: core.DataEmpty}, f.Now)
		*e = e.Says(h)
		return says
	default:
		if f.Server != nil {
			f.Server.UUID = source
		}
		r := core.Report{Instance: key, Data: core.DataPopulated, Server: &core.Server{Executed: set(value)}}
		h, says := HeldBy(r, f.Now)
		*e = e.Says(h)
		return says
	}
	return true
}

// TestWhoSaysWhatItHolds holds that a mysqld that does not answer may hold anything, and that what
// was received counts as what was executed does.
func TestWhoSaysWhatItHolds(t *testing.T) {
	at := epochZero.Add(time.Second)
	if h, says := HeldBy(core.Report{Instance: "db-2", Data: core.DataPopulated}, at); says {
		t.Errorf("one that does not answer says %v", h)
	}
	if _, says := HeldBy(core.Report{}, at); says {
		t.Error("nobody says something")
	}
	s := &core.Server{Executed: set("1-9"), Replication: &core.Replication{Retrieved: set("10-12")}}
	h, says := HeldBy(core.Report{Instance: "db-2", Data: core.DataPopulated, Server: s}, at)
	if !says || !h.Set.Equal(set("1-12")) || h.At != at || h.Instance != "db-2" {
		t.Errorf("it says %v, %t", h, says)
	}
}

// TestAnAnswerOfAFormerLifeIsNone holds that what was said before mysqld ended again does not count.
func TestAnAnswerOfAFormerLifeIsNone(t *testing.T) {
	f := primary()
	f.Cluster.Names, f.Server.UUID, f.WritableEpoch = []string{"db-1", "db-2"}, source, 0
	f.Mysqld.MayWrite = false
	f.Mysqld.DownSince = f.Now
	early := f.Now.Add(-time.Second)
	said := Held{Instance: "db-2", At: early, Set: set("1-200")}
	f.Elsewhere = Elsewhere{}.Asks(AskHeld{Anew: true}, early).Says(said).Ends(early)
	d := Decide(f)
	if d.Reason != core.InstancePromoting || len(d.Actions) != 1 || d.Actions[0].String() != "ask db-2 what they hold" {
		t.Errorf("it decides %s %s %v", d.Reason, d.Message, d.Actions)
	}
	// An answer to the question of before that comes late is of before.
	f.Elsewhere = f.Elsewhere.Asks(AskHeld{Anew: true}, f.Now.Add(time.Millisecond))
	f.Elsewhere = f.Elsewhere.Says(said)
	f.Now = f.Now.Add(2 * time.Millisecond)
	if d = Decide(f); d.Reason != core.InstancePromoting || len(d.Actions) != 0 {
		t.Errorf("after a late answer it decides %s %s %v", d.Reason, d.Message, d.Actions)
	}
}

// TestWhoMayGetMoreIsAskedAgain holds that an answer is not the last word while its connection to the
// server that has ended may bring more.
func TestWhoMayGetMoreIsAskedAgain(t *testing.T) {
	f := primary()
	f.Cluster.Names, f.Server.UUID, f.WritableEpoch = []string{"db-1", "db-2"}, source, 0
	f.Mysqld.MayWrite = false
	f.Mysqld.DownSince, f.Mysqld.Ended = f.Now, true
	at := f.Now.Add(time.Millisecond)
	receiving := Held{Instance: "db-2", At: at, Set: f.Server.Executed, From: source}
	f.Elsewhere = Elsewhere{}.Asks(AskHeld{Anew: true}, at).Says(receiving).Ends(at)
	f.Now = at.Add(AskRetry)
	d := Decide(f)
	if d.Reason != core.InstancePromoting || len(d.Actions) != 1 || d.Actions[0].String() != "ask db-2 what they hold" {
		t.Errorf("while db-2 may get more it decides %s %s %v", d.Reason, d.Message, d.Actions)
	}
	last := Held{Instance: "db-2", At: f.Now, Set: f.Server.Executed}
	open := f.Elsewhere
	f.Elsewhere = open.Says(last)
	becomes := "become primary in epoch 3 with 0 acknowledgements"
	if d = Decide(f); len(d.Actions) != 1 || d.Actions[0].String() != becomes {
		t.Errorf("after db-2's last word it decides %s %s %v", d.Reason, d.Message, d.Actions)
	}
	f.Elsewhere, f.Now = open, at.Add(heldWait)
	if d = Decide(f); len(d.Actions) != 1 || !strings.HasPrefix(d.Actions[0].String(), becomes) {
		t.Errorf("after its time it decides %s %s %v", d.Reason, d.Message, d.Actions)
	}
}

// TestWhoHearsNobodyGetsNoMore reports from whom one may get more by its own word.
func TestWhoHearsNobodyGetsNoMore(t *testing.T) {
	at := time.Unix(5, 0)
	for _, c := range []struct {
		of   *core.Replication
		from string
	}{
		{nil, ""},
		{&core.Replication{SourceUUID: source, IORunning: true}, source},
		{&core.Replication{SourceUUID: source, IORunning: true, NoSpace: true}, source},
		{&core.Replication{SourceUUID: source, IORunning: true, Silent: true}, ""},
		{&core.Replication{SourceUUID: source, IOConnecting: true}, ""},
	} {
		h, says := HeldBy(core.Report{Instance: "db-2", Server: &core.Server{Replication: c.of}}, at)
		if !says || h.From != c.from {
			t.Errorf("of %+v: may get more from %q, %t", c.of, h.From, says)
		}
	}
}
