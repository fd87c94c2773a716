package binlog

import (
	"encoding/binary"
	"testing"
)

// queryOf is an event with a statement, without a checksum.
func queryOf(statement string, failed uint16) Event {
	body := make([]byte, queryHead)
	binary.LittleEndian.PutUint16(body[offsetQueryError:], failed)
	header := make([]byte, headerSize)
	header[offsetType] = typeQuery
	return Event{Header: header, Body: append(append(body, 0), statement...)}
}

// Whatever may change a table is a statement; what says where a transaction begins and ends is none.
func TestWhatMayChangeATableIsAStatement(t *testing.T) {
	s := &Stream{}
	for statement, want := range map[string]bool{
		"BEGIN": false, "COMMIT": false, "ROLLBACK TO `s`": false, "SAVEPOINT `s`": false,
		"XA START X'61',X'',1":        false,
		"xa commit X'61',X'',1":       false,
		"ALTER TABLE t ENGINE=InnoDB": true, "/* c */ DROP TABLE t": true, "UPDATE t SET a = 1": true,
		"BEGINNING": true,
		"":          true, "CREATE TABLE `t` (`a` int) START TRANSACTION": true,
	} {
		if got := s.IsStatement(queryOf(statement, 0)); got != want {
			t.Errorf("%q: %t", statement, got)
		}
	}
	if !s.IsStatement(queryOf("BEGIN", 1)) {
		t.Error("what cannot be told is no statement")
	}
	rows := queryOf("", 0)
	rows.Header[offsetType] = 31
	if s.IsStatement(rows) {
		t.Error("rows are a statement")
	}
}
