package writer

import (
	"database/sql/driver"
	"errors"
	"net"

	"github.com/go-sql-driver/mysql"
)

// Outcome is the fate of one attempt to insert a row.
type Outcome uint8

// The package's documentation defines them.
const (
	Acknowledged Outcome = iota + 1
	Unknown
	Refused
)

func (o Outcome) String() string {
	return [...]string{"none", "acknowledged", "unknown", "refused"}[o]
}

// settlesNothing are the server's errors after which the row may be there all the same: the
// session was ended from outside, or failed, at or after the commit. A wrong entry here hides an
// extra row; a missing one accuses the server of a row that it never denied.
var settlesNothing = map[uint16]bool{
	1053: true, // ER_SERVER_SHUTDOWN
	1180: true, // ER_ERROR_DURING_COMMIT
	1317: true, // ER_QUERY_INTERRUPTED
	1598: true, // ER_BINLOG_LOGGING_IMPOSSIBLE
	3100: true, // ER_RUN_HOOK_ERROR: a replication plugin failed, before or after the commit
	// ER_TRANSACTION_ROLLBACK_DURING_COMMIT: a member that is expelled answers so what it has sent to the group already
	3101: true,
	3169: true, // ER_SESSION_WAS_KILLED
}

func outcomeOf(err error) Outcome {
	var answer *mysql.MySQLError
	switch {
	case err == nil:
		return Acknowledged
	case errors.As(err, &answer) && !settlesNothing[answer.Number]:
		return Refused
	case errors.Is(err, driver.ErrBadConn): // the driver's word that nothing was sent
		return Refused
	}
	return Unknown
}

// sampleText leaves out what differs from one occurrence to the next (the local port), so that
// equal errors are counted together.
func sampleText(err error) string {
	var operation *net.OpError
	if errors.As(err, &operation) && operation.Err != nil {
		return operation.Op + " " + operation.Net + ": " + operation.Err.Error()
	}
	return err.Error()
}
