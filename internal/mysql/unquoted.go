package mysql

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	driver "github.com/go-sql-driver/mysql"
)

// unquotedError is the failure of a statement that holds a password. The server may quote the statement, or
// a value in it, and what becomes of an error is read by many: the log, the status, events.
type unquotedError struct{ err error }

// Error names a server's refusal by its number, unless its words are of other things.
func (e *unquotedError) Error() string {
	var answer *driver.MySQLError
	if !errors.As(e.err, &answer) || slices.Contains(ofOtherThings, answer.Number) {
		return e.err.Error()
	}
	return byNumber(e.err) + "; the server's words are not repeated here, for they may quote the password"
}

// Unwrap returns what the server said, which may hold a password.
func (e *unquotedError) Unwrap() error { return e.err }

// ofOtherThings are refusals whose words hold nothing of the statement, and are what helps: why a donor is of
// no use, and what has become of a member that was joining.
var ofOtherThings = []uint16{
	3092, 3093, 3094, 3095, 3096, 3097, 3098, // START GROUP_REPLICATION; each has but the one text
	3862, 3863, 3864, 3865, 3866, 3867, 3868, 3869, 3870, 3871, 3872, 3873, errCopyIsTaken,
	3875, // CLONE, of donor and recipient
}

// unquoted has an error of a statement with a password quote nothing of it.
func unquoted(err error) error {
	if err == nil {
		return nil
	}
	return &unquotedError{err}
}

// byNumber is a server's refusal without its words; another error says what it is.
func byNumber(err error) string {
	var answer *driver.MySQLError
	if !errors.As(err, &answer) {
		return err.Error()
	}
	return fmt.Sprintf("error %d (%s)", answer.Number, answer.SQLState)
}

// unquotedQuery is what stopped an applier, with no more of the statement that it quotes than its first two words: the
// rest may be a user's data, or the hash of a password.
func unquotedQuery(text string) string {
	before, query, quotes := strings.Cut(text, "Query: '")
	if !quotes {
		return text
	}
	words := strings.Fields(query)
	return before + "Query: '" + strings.Join(words[:min(len(words), 2)], " ") + " …'"
}
