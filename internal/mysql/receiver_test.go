package mysql

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"cnmsql.co/internal/gtid"
)

// SHOW REPLICA STATUS reads first what was received, and only then whether the receiver is
// connected: of a source that is lost in between, the last transactions are in neither.
func TestWhoseConnectionWasThereBeforeItWasAskedWhatItReceivedMayReceiveMore(t *testing.T) {
	for running, before := range map[string]struct{ connected, receives, connecting bool }{
		"Yes":        {connected: true, receives: true},
		"Connecting": {connected: true, receives: true},
		"No":         {connected: false},
	} {
		row := map[string]string{"Source_Host": "db-1", "Replica_IO_Running": running}
		r, err := (&Server{}).replicationOf(t.Context(), row, receiver{connected: before.connected})
		if err != nil || r.IORunning != before.receives || r.IOConnecting != before.connecting {
			t.Errorf("%s, and before it connected %t: %+v, %v", running, before.connected, r, err)
		}
	}
	row := map[string]string{"Source_Host": "db-1", "Replica_IO_Running": "Connecting"}
	r, err := (&Server{}).replicationOf(t.Context(), row, receiver{})
	if err != nil || r.IORunning || !r.IOConnecting {
		t.Errorf("lost before it was asked: %+v, %v", r, err)
	}
}

// A channel that may not be changed stays as it is, and receives nothing; and whether it
// receives is asked before what it has received.
func TestAChannelThatHoldsTooMuchStaysWhereItPoints(t *testing.T) {
	s, is := aServer(t)
	server := Open(s.Socket(), is, asRoot)
	defer server.Close()
	follow := func(host string, refused error) error {
		return server.BecomeReplicaOf(t.Context(), Source{Host: host, Port: 1, Account: Account{User: "r"},
			CAFile: s.Authority(), CertFile: "", KeyFile: "", Refuses: func(gtid.Set) error { return refused }})
	}
	if err := follow("first.invalid", nil); err != nil {
		t.Fatal(err)
	}
	const times = "SELECT CONCAT_WS(' ', CONNECTION_RETRY_INTERVAL, HEARTBEAT_INTERVAL) FROM " +
		"performance_schema.replication_connection_configuration"
	if got := s.Text(times); got != "1 0.500" {
		t.Errorf("it connects anew and hears its source after %s seconds", got)
	}
	refused := errors.New("it holds more")
	if err := follow("second.invalid", refused); !errors.Is(err, refused) {
		t.Errorf("refused, it says %v", err)
	}
	s.Exec("SET GLOBAL log_output = 'TABLE', GLOBAL general_log = ON")
	r, err := server.Replication(t.Context())
	if err != nil || r.SourceHost != "first.invalid" || r.IORunning || r.IOConnecting || !r.SQLRunning {
		t.Errorf("the channel is %+v, %v", r, err)
	}
	asked := strings.Split(s.Text(`SELECT GROUP_CONCAT(LEFT(CONVERT(argument USING utf8mb4), 30) ORDER BY event_time
		SEPARATOR '|') FROM mysql.general_log WHERE command_type IN ('Query', 'Execute')`), "|")
	receiver := slices.IndexFunc(asked, func(q string) bool { return strings.Contains(q, "SERVICE_STATE") })
	status := slices.IndexFunc(asked, func(q string) bool { return strings.HasPrefix(q, "SHOW REPLICA STATUS") })
	if receiver < 0 || status < receiver {
		t.Errorf("it was asked in this order: %s", strings.Join(asked, "; "))
	}
}
