package mysql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
)

// The status of a Cluster is read by people who may not read its manifest's Secrets, and the
// server quotes what it did not understand.
func TestAFailedStatementOfTheUsersIsNotQuoted(t *testing.T) {
	quoting := &driver.MySQLError{Number: 1064, SQLState: [5]byte{'4', '2', '0', '0', '0'},
		Message: "You have an error in your SQL syntax near 'IDENTIFYED BY 'hunter2'' at line 1"}
	err := fmt.Errorf("initialising: %w", &UserStatementError{Index: 2, Err: quoting})
	got := err.Error()
	if strings.Contains(got, "hunter2") || strings.Contains(got, "IDENTIFYED") {
		t.Errorf("the statement is quoted: %s", got)
	}
	for _, want := range []string{"postInitSQL[2]", "error 1064 (42000)", "create a new Cluster"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in: %s", want, got)
		}
	}
	if !errors.As(err, &quoting) {
		t.Error("the server's error is not to be found any more")
	}
}

func TestAStatementThatGotNoAnswerTellsWhy(t *testing.T) {
	err := &UserStatementError{Index: 0, Err: driver.ErrInvalidConn}
	if !strings.Contains(err.Error(), driver.ErrInvalidConn.Error()) {
		t.Errorf("why it failed is missing: %v", err)
	}
}

// TestAnArgumentIsPutInWhereItBelongs holds a name with a ? against what comes behind it.
func TestAnArgumentIsPutInWhereItBelongs(t *testing.T) {
	st := statement{"CREATE USER ?@'%' IDENTIFIED BY ? REQUIRE SSL", []any{"re?pl", "it's?\\\n"}}
	const want = `CREATE USER 're?pl'@'%' IDENTIFIED BY 'it\'s?\\\n' REQUIRE SSL`
	if got := st.inline(); got != want {
		t.Errorf("it is %s, not %s", got, want)
	}
}
