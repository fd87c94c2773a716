package writer

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestEachErrorHasTheOutcomeThatItProves(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want Outcome
	}{
		"OK":                        {nil, Acknowledged},
		"read-only":                 {&mysql.MySQLError{Number: 1290}, Refused},
		"super read-only":           {&mysql.MySQLError{Number: 1836}, Refused},
		"no such table":             {fmt.Errorf("insert: %w", &mysql.MySQLError{Number: 1146}), Refused},
		"shutting down":             {&mysql.MySQLError{Number: 1053}, Unknown},
		"killed while it waited":    {&mysql.MySQLError{Number: 1317}, Unknown},
		"hook failed":               {&mysql.MySQLError{Number: 3100}, Unknown},
		"expelled while it waited":  {&mysql.MySQLError{Number: 3101}, Unknown},
		"connection lost":           {mysql.ErrInvalidConn, Unknown},
		"end of file":               {io.EOF, Unknown},
		"timeout":                   {os.ErrDeadlineExceeded, Unknown},
		"never sent":                {driver.ErrBadConn, Refused},
		"something never seen here": {errors.New("?"), Unknown},
	} {
		if got := outcomeOf(tc.err); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestEqualErrorsFromDifferentPortsAreOneSample(t *testing.T) {
	r := newRecord(1)
	for port := range 3 {
		r.addUnconnected(&net.OpError{Op: "dial", Net: "tcp", Source: &net.TCPAddr{Port: port + 1},
			Err: syscall.ECONNREFUSED})
	}
	report := r.report("x")
	if len(report.Errors) != 1 || report.Errors[0].Count != 3 || report.Unconnected != 3 {
		t.Errorf("got %+v", report.Errors)
	}
}
