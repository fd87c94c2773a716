package mysql

import (
	"database/sql"
	"testing"

	"cnmsql.co/test/mysqld"
)

func TestAnUnderscoreInADatabaseNameGrantsNoOtherDatabase(t *testing.T) {
	if got := grantee("my_app%", false); got != "`my\\_app\\%`" {
		t.Error(got)
	}
	if got := grantee("my_app%", true); got != "`my_app%`" {
		t.Error("with partial_revokes: " + got)
	}
	if got := identifier("a`b"); got != "`a``b`" {
		t.Error(got)
	}
}

// TestTheOwnerHasItsDatabaseAndNoOther asks a real server, with and without partial_revokes.
func TestTheOwnerHasItsDatabaseAndNoOther(t *testing.T) {
	for _, revokes := range []string{"OFF", "ON"} {
		t.Run("partial_revokes="+revokes, func(t *testing.T) {
			s := mysqld.ForTest(t)
			s.Initialize()
			s.Start(1, "--partial-revokes="+revokes)
			s.Exec("CREATE DATABASE myXapp")
			root := func() ([]Account, error) { return []Account{{User: "root"}}, nil }
			server := Open(s.Socket(), func() Version { return Oldest }, root)
			first := First{Manager: Account{"manager", "Manager-1"}, Replication: Account{"replication", "Repl-1"},
				Root: Account{"root", "Root-1"}, Owner: Account{"app", "App-1"}, Database: "my_app"}
			if err := server.Populate(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			app, err := sql.Open("mysql", "app:App-1@unix("+s.Socket()+")/my_app")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = app.Close() }()
			if _, err := app.Exec("CREATE TABLE my_app.t (id INT PRIMARY KEY)"); err != nil {
				t.Errorf("the owner and its own database: %v", err)
			}
			if _, err := app.Exec("CREATE TABLE myXapp.t (id INT PRIMARY KEY)"); !isError(err, 1142) {
				t.Errorf("the owner and another database: %v", err)
			}
		})
	}
}
