package mysql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
)

// TestAPasswordIsNotQuoted holds what is told of a refusal against the words with which a server repeats a
// password, and against those that only tell why a donor is of no use.
func TestAPasswordIsNotQuoted(t *testing.T) {
	state := [5]byte{'H', 'Y', '0', '0', '0'}
	for _, c := range []struct {
		said error
		want string
	}{
		{&driver.MySQLError{Number: 1525, SQLState: state,
			Message: "Incorrect argument contains not-allowed LF value: 'hunter2\nhunter3'"}, "error 1525 (HY000)"},
		{&driver.MySQLError{Number: 3862, SQLState: state, Message: "Clone Donor Error: 1045 : Access denied"},
			"Clone Donor Error: 1045"},
		{driver.ErrInvalidConn, driver.ErrInvalidConn.Error()},
	} {
		err := fmt.Errorf("pointing replication: %w", unquoted(c.said))
		if got := err.Error(); strings.Contains(got, "hunter") || !strings.Contains(got, c.want) {
			t.Errorf("of %v it tells %s", c.said, got)
		}
		if !errors.Is(err, c.said) {
			t.Errorf("what the server said is not to be found any more in %v", err)
		}
	}
	if unquoted(nil) != nil {
		t.Error("no error is one")
	}
}

// TestWhatStoppedAnApplierQuotesNoStatement holds what the status and events tell of a statement that failed.
func TestWhatStoppedAnApplierQuotesNoStatement(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"Worker 1 failed executing transaction 'u:5' at source log b.3, end_log_pos 12; Error 'Operation CREATE USER " +
			"failed for 'a'@'%'' on query. Default database: ''. Query: 'CREATE USER 'a'@'%' IDENTIFIED WITH " +
			"'caching_sha2_password' AS '$A$005$x''": "Worker 1 failed executing transaction 'u:5' at source log " +
			"b.3, end_log_pos 12; Error 'Operation CREATE USER failed for 'a'@'%'' on query. Default database: ''. " +
			"Query: 'CREATE USER …'",
		"Error 'x' on q. Query: 'COMMIT'":                      "Error 'x' on q. Query: 'COMMIT' …'",
		"Could not execute Write_rows event on table shop.t; ": "Could not execute Write_rows event on table shop.t; ",
	} {
		if got := unquotedQuery(text); got != want {
			t.Errorf("%s\nis told as\n%s", text, got)
		}
	}
}
