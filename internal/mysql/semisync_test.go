package mysql

import (
	"math"
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// TestForEverIsTheLongestTimeThatTheServerTakes: "never degrades" was a timeout of a day elsewhere.
// A longer one than this is cut to it by the server, with a warning only.
func TestForEverIsTheLongestTimeThatTheServerTakes(t *testing.T) {
	if Forever.Milliseconds() != math.MaxUint32 || Forever < 49*24*time.Hour {
		t.Errorf("a commit waits for %s", Forever)
	}
}

// TestAForeignReaderIsNoReplicaThatAcknowledges counts those of whom a commit may wait for a word.
func TestAForeignReaderIsNoReplicaThatAcknowledges(t *testing.T) {
	sessions := []Session{
		{User: "root", Command: "Query", Wait: "Waiting for semi-sync ACK from replica"},
		{User: "debezium", Command: "Binlog Dump GTID"},
		{User: "repl", Command: "Binlog Dump GTID"},
		{User: "root", Command: "Binlog Dump"},
		{User: "repl", Command: "Query"},
	}
	var got core.SemiSync
	if countWaiting(sessions, "repl", &got); got.WaitSessions != 1 || got.Clients != 1 || !got.SourceActive {
		t.Errorf("counted %d that wait and %d replicas, %+v", got.WaitSessions, got.Clients, got)
	}
	got = core.SemiSync{}
	if countWaiting(sessions[1:], "repl", &got); got.SourceActive {
		t.Errorf("nobody waits, and it is active: %+v", got)
	}
}

// TestOneThatWaitsForNobodyWhenAloneDoesNotBlock holds that no election counts on a server of which a superuser has
// commits go on at once while too few replicas are attached, whatever their time is, and that the next order mends it.
func TestOneThatWaitsForNobodyWhenAloneDoesNotBlock(t *testing.T) {
	s, is := aServer(t)
	n, server := is().names(), Open(s.Socket(), is, asRoot)
	defer server.Close()
	s.Exec("INSTALL PLUGIN " + n.semiSyncSource + " SONAME '" + n.semiSyncSourcePlugin + "'")
	s.Exec("INSTALL PLUGIN " + n.semiSyncReplica + " SONAME '" + n.semiSyncReplicaPlugin + "'")
	expect := func(when string, blocks, active bool) {
		t.Helper()
		got, err := server.SemiSync(t.Context())
		if err != nil || got.Blocks != blocks || got.SourceActive != active {
			t.Errorf("%s: %+v, %v", when, got, err)
		}
	}
	require := func() {
		t.Helper()
		if err := server.RequireAcks(t.Context(), 1, Forever); err != nil {
			t.Fatal(err)
		}
	}
	require()
	expect("required", true, true)
	s.Exec("SET GLOBAL " + n.semiSyncAlone + " = OFF")
	expect("switched off", false, false)
	require()
	expect("required again", true, true)
}
