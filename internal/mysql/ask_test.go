package mysql

import (
	"database/sql"
	"strconv"
	"strings"
	"testing"

	"cnmsql.co/internal/core"
	"cnmsql.co/test/mysqld"
)

// What is asked together is answered as it is one by one, without the semi-sync plugins and
// with them, and a connection goes on after a question that was refused.
func TestQuestionsAreAnsweredTogetherAsOneByOne(t *testing.T) {
	s, is := aServer(t)
	alone, together := Open(s.Socket(), is, asRoot), OpenForStatus(s.Socket(), is, asRoot)
	defer alone.Close()
	defer together.Close()
	same := func(when string) {
		t.Helper()
		one, err := alone.Status(t.Context())
		if err != nil {
			t.Fatalf("%s, one by one: %v", when, err)
		}
		all, err := together.Status(t.Context())
		if err != nil {
			t.Fatalf("%s, together: %v", when, err)
		}
		if one.UUID == "" || one.UUID != all.UUID || one.SemiSync != all.SemiSync ||
			!one.Executed.Equal(all.Executed) || (one.Replication == nil) != (all.Replication == nil) {
			t.Errorf("%s: one by one %+v, together %+v", when, one, all)
		}
	}
	same("without plugins")
	n := is().names()
	s.Exec("INSTALL PLUGIN " + n.semiSyncSource + " SONAME '" + n.semiSyncSourcePlugin + "'")
	s.Exec("INSTALL PLUGIN " + n.semiSyncReplica + " SONAME '" + n.semiSyncReplicaPlugin + "'")
	s.Exec("SET GLOBAL " + n.semiSyncSource + "_enabled = ON")
	same("with plugins")
	all, err := together.Status(t.Context())
	if want := (core.SemiSync{SourceEnabled: true, SourceActive: true, Acks: 1}); err != nil || all.SemiSync != want {
		t.Errorf("with plugins: %+v, %v", all, err)
	}
	for _, server := range []*Server{alone, together} {
		aRefusalEndsWhatIsAsked(t, server)
	}
}

// aServer is a mysqld that was just made, and its version.
func aServer(t *testing.T) (s *mysqld.Test, is func() Version) {
	t.Helper()
	s = mysqld.ForTest(t)
	s.Initialize()
	s.Start(1)
	version, err := parseNumbers(s.Text("SELECT @@version"))
	if err != nil {
		t.Fatal(err)
	}
	return s, func() Version { return version }
}

func asRoot() ([]Account, error) { return []Account{{User: "root"}}, nil }

func aRefusalEndsWhatIsAsked(t *testing.T, server *Server) {
	t.Helper()
	read := 0
	ask := func(query string) question {
		return question{"asking " + query, query, func(rows *sql.Rows) error {
			var text string
			err := readOne(rows, &text)
			if read++; err == nil && text != strconv.Itoa(read) {
				t.Errorf("the answer to question %d is %s", read, text)
			}
			return err
		}}
	}
	err := server.ask(t.Context(), ask("SELECT 1"), ask("SELECT @@global.nothing"), ask("SELECT 3"))
	is := isError(err, errUnknownVariable) && strings.Contains(err.Error(), "asking SELECT @@global.nothing")
	if !is || read != 1 {
		t.Errorf("after %d answers: %v", read, err)
	}
	read = 0
	if err := server.ask(t.Context(), ask("SELECT 1"), ask("SELECT 2")); err != nil || read != 2 {
		t.Errorf("after a refusal: %d answers, %v", read, err)
	}
}

// TestASessionsClockIsNeverChanged holds the zone of our sessions against that of a server whose clocks change.
func TestASessionsClockIsNeverChanged(t *testing.T) {
	s, is := aServer(t)
	s.Exec("SET GLOBAL time_zone = '+02:00'")
	server := Open(s.Socket(), is, asRoot)
	defer server.Close()
	var zone string
	if err := server.DB().QueryRow("SELECT @@session.time_zone").Scan(&zone); err != nil || zone != "+00:00" {
		t.Errorf("the zone is %s, %v", zone, err)
	}
}
