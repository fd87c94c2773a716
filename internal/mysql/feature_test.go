package mysql

import (
	"testing"

	"cnmsql.co/internal/core"
	"cnmsql.co/test/mysqld"
)

// The decisions know by the same version as the table of features who can be told whom to admit.
func TestCoreKnowsWhoAdmitsAtOnce(t *testing.T) {
	for _, text := range []string{"8.0.22", "8.0.23-14", "8.0.24", "8.0.45", "8.4.6", "9.7.0"} {
		v, err := parseNumbers(text)
		if err != nil {
			t.Fatal(err)
		}
		if v.has(allowlistOfRunningMember) != core.AdmitsAtOnce(text) {
			t.Errorf("%s: %t", text, core.AdmitsAtOnce(text))
		}
	}
}

func TestRelayLogsAreTakenInTheWordsOfTheServer(t *testing.T) {
	const now = "CHANGE REPLICATION SOURCE TO SOURCE_HOST='archive', SOURCE_AUTO_POSITION=0, RELAY_LOG_FILE=?, " +
		"RELAY_LOG_POS=4 FOR CHANNEL 'archive'"
	const before = "CHANGE MASTER TO MASTER_HOST='archive', MASTER_AUTO_POSITION=0, RELAY_LOG_FILE=?, " +
		"RELAY_LOG_POS=4 FOR CHANNEL 'archive'"
	for version, want := range map[string]string{"8.0.22": before, "8.0.22-13-debug": before, "8.0.23-14": now,
		"8.0.45-log": now, "8.4.6": now, "9.7.4-2": now} {
		if got, err := TakeRelayLogs(version, "archive"); got != want || err != nil {
			t.Errorf("%s: %s, %v", version, got, err)
		}
	}
	if got, err := TakeRelayLogs("nonsense", "archive"); err == nil {
		t.Errorf("a server of an unknown version takes them by %s", got)
	}
}

// TestAnOldServerUnderstandsItsWords tries them on the servers that know both.
func TestAnOldServerUnderstandsItsWords(t *testing.T) {
	s := mysqld.ForTest(t)
	s.Initialize()
	s.Start(1)
	if s.Text("SELECT VERSION() < '8.4'") != "1" {
		t.Skip("a server from 8.4 on knows no CHANGE MASTER")
	}
	for _, version := range []string{"8.0.22", s.Text("SELECT VERSION()")} {
		statement, err := TakeRelayLogs(version, "archive")
		if err != nil {
			t.Fatal(err)
		}
		const noSuchRelayLog = 1380 // it looked for that
		_, err = s.DB.ExecContext(t.Context(), statement, "mysqld-relay-bin-archive.000001")
		if !isError(err, noSuchRelayLog) {
			t.Errorf("%s: %v", statement, err)
		}
	}
}
