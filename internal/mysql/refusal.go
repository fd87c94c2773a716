package mysql

import (
	"errors"
	"regexp"

	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/internal/core"
)

// refusals are the errors by which a source turns a replica away that has reached it.
// What is not among them may be the network's fault.
var refusals = map[int]core.Refused{
	1044:             core.RefusedLogin, // not this database
	errAccessDenied:  core.RefusedLogin,
	1130:             core.RefusedLogin, // not from this host
	errNoPrivilege:   core.RefusedLogin, // no REPLICATION SLAVE
	1251:             core.RefusedLogin, // authentication that is not supported
	errNoPlugin:      core.RefusedLogin, // its plugin is not loaded
	1698:             core.RefusedLogin, // not without a password
	1820:             core.RefusedLogin, // password expired
	1862:             core.RefusedLogin, // password expired
	2059:             core.RefusedLogin, // its plugin cannot be loaded here
	2061:             core.RefusedLogin, // authentication needs another connection
	3118:             core.RefusedLogin, // account locked
	3159:             core.RefusedLogin, // not without TLS
	3955:             core.RefusedLogin, // locked after failed logins
	errTooMany:       core.RefusedTooMany,
	1129:             core.RefusedTooMany, // host blocked after connection errors
	1203:             core.RefusedTooMany, // max_user_connections
	1226:             core.RefusedTooMany, // limits of the account
	errTLSConnection: core.RefusedTLS,
}

func refusal(errno int) core.Refused { return refusals[errno] }

// isRefusedLogin reports whether the server itself said that it does not let the account in.
func isRefusedLogin(err error) bool {
	var e *driver.MySQLError
	return errors.As(err, &e) && refusal(int(e.Number)) == core.RefusedLogin
}

// connectAttempt is what of Last_IO_Error changes with every attempt.
var connectAttempt = regexp.MustCompile(
	`\. This was attempt \d+/\d+, with a delay of \d+ seconds? between attempts\. Message: `)

func withoutAttempt(said string) string { return connectAttempt.ReplaceAllString(said, ": ") }
