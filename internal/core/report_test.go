package core

import (
	"reflect"
	"testing"

	"cnmsql.co/internal/gtid"
)

// TestWhatAReplicaGotFromNobodyCallsForADecision, and what it got from its source does not.
func TestWhatAReplicaGotFromNobodyCallsForADecision(t *testing.T) {
	const source, other = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
	report := func(executed string, of *Replication) any {
		return Report{Server: &Server{Executed: gtid.MustParse(executed), Replication: of}}.WithoutPositions()
	}
	replica := &Replication{SourceUUID: source}
	for _, c := range []struct {
		what          string
		before, after string
		of            *Replication
		matters       bool
	}{
		{"its source's own", source + ":1-5", source + ":1-9", replica, false},
		{"somebody else's", source + ":1-5", source + ":1-5," + other + ":1", replica, true},
		{"somebody else's, once more", other + ":1", other + ":1-2", replica, true},
		{"a primary's", source + ":1-5", source + ":1-9", nil, false},
		{"of a source whose name it does not know", source + ":1-5", source + ":1-9", &Replication{}, false},
	} {
		if got := !reflect.DeepEqual(report(c.before, c.of), report(c.after, c.of)); got != c.matters {
			t.Errorf("%s: calls for a decision: %t", c.what, got)
		}
	}
}
