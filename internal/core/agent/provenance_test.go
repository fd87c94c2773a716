package agent

import (
	"testing"

	"cnmsql.co/internal/core"
)

var (
	onNode1  = Residence{Boot: "boot-1", Mount: "8:16 sdb 4711", Node: "node-1"}
	rebooted = Residence{Boot: "boot-2", Mount: "8:16 sdb 17", Node: "node-1"}
)

func TestWhatWasReceivedIsThereWhileItsPageCacheLivesOn(t *testing.T) {
	remounted, onNode2 := onNode1, onNode1
	remounted.Mount, onNode2.Node = "8:16 sdb 4712", "node-2"
	received := Cached{}.Receives(onNode1)
	for _, test := range []struct {
		name  string
		kept  Cached
		start Start
		lacks bool
	}{
		{"mysqld, manager, container or Pod ended", received, Start{Here: onNode1}, false},
		{"the node was without power", received, Start{Here: rebooted}, true},
		{"the volume was mounted again", received, Start{Here: remounted}, true},
		{"the volume is on another node", received, Start{Here: onNode2}, true},
		{"the volume could not write", received, Start{Here: onNode1, Failed: true}, true},
		{"mysqld drops its relay logs", received, Start{Here: onNode1, Drops: true}, true},
		{"nobody can tell where it is", received, Start{}, true},
		{"nobody could tell where it was", Cached{}.Receives(Residence{}), Start{}, true},
		{"nobody could tell where it was, and now can", Cached{}.Receives(Residence{}), Start{Here: onNode1}, true},
		{"the manager ended while the volume was asked", received.Asked(), Start{Here: onNode1}, true},
		{"the volume was asked, and nothing was unflushed", Cached{}.Asked(), Start{Here: onNode1}, false},
		{"it was flushed at an orderly stop", received.Flushed(), Start{Here: onNode2}, false},
		{"it was opened for writes", received.Opens(), Start{Here: rebooted}, false},
		{"a former release flushed each event", Cached{}, Start{Here: onNode1}, false},
		{"a former release, whose relay logs are dropped", Cached{}, Start{Here: onNode1, Drops: true}, false},
	} {
		if got := test.kept.Starts(test.start).MayLack; got != test.lacks {
			t.Errorf("%s: may lack %t", test.name, got)
		}
	}
}

func TestThatItMayLackSomethingOutlivesEverythingButBeingWholeOrOpened(t *testing.T) {
	lacking := Cached{}.Receives(onNode1).Starts(Start{Here: rebooted})
	for name, c := range map[string]Cached{
		"a second start":             lacking.Starts(Start{Here: rebooted}),
		"receiving and another boot": lacking.Receives(rebooted).Starts(Start{Here: onNode1}),
		"an orderly stop":            lacking.Receives(rebooted).Flushed().Starts(Start{Here: onNode1}),
	} {
		if !c.MayLack {
			t.Errorf("forgotten by %s", name)
		}
	}
	if c := lacking.Receives(rebooted).Whole(); c.MayLack || !c.Unflushed || c.In != rebooted {
		t.Errorf("whole: %+v; what it has received since is in the cache of this boot", c)
	}
	if c := lacking.Opens(); c.MayLack {
		t.Error("it was opened, so that nothing is missing")
	}
}

func TestWhereItWasReceivedFirstStays(t *testing.T) {
	if c := (Cached{}).Receives(onNode1).Receives(rebooted); c.In != onNode1 {
		t.Errorf("received in %v", c.In)
	}
}

func TestRelayLogsOfWhichNothingIsNotedAreDroppedUnlessEachEventWasFlushed(t *testing.T) {
	received := Cached{}.Receives(onNode1)
	for _, test := range []struct {
		name            string
		kept            Cached
		others, flushed bool
	}{
		{"a volume of a former release", Cached{}, true, false},
		{"the same page cache", received.Starts(Start{Here: onNode1}), false, false},
		{"another page cache", received.Starts(Start{Here: rebooted}), true, true},
		{"flushed at an orderly stop", received.Flushed().Starts(Start{Here: rebooted}), false, false},
		{"data made anew, in a copy of another's", received.Replaced(), true, false},
		{"received into that", received.Replaced().Receives(onNode1), false, false},
	} {
		others, flushed := test.kept.DropsRelayLogs(false), test.kept.DropsRelayLogs(true)
		if others != test.others || flushed != test.flushed {
			t.Errorf("%s: under quorum they are dropped: %t; in a group or under another mode: %t", test.name, flushed,
				others)
		}
	}
}

func TestTheReportTellsThatItMayLackSomething(t *testing.T) {
	var r core.Report
	Cached{MayLack: true}.TellProvenance(&r)
	if !r.MayLack {
		t.Error("not told")
	}
}
