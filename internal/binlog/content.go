package binlog

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"strings"
)

const (
	typeQuery    = 2
	typeStop     = 3
	typeRotate   = 4
	typeFormat   = 15
	typeLoad     = 18 // LOAD DATA as a statement
	typePrevious = 35
	// A Query event begins with thread, time, the length of the schema's name, an error and
	// the length of the status variables.
	queryHead         = 4 + 4 + 1 + 2 + 2
	offsetSchemaSize  = 8
	offsetQueryError  = 9
	offsetStatusSize  = 11
	checksumSize      = 4
	checksumNone      = 0
	checksumCRC32     = 1
	maxWholeEvent     = 64 << 10
	maxStatementShown = 100
)

// maintenance is what an ordinary user may run on a server that is read-only, and what then
// has a GTID although nothing of it was done, or nothing but in memory: REPAIR TABLE,
// ANALYZE TABLE with its histograms, and the harmless kinds of FLUSH. No comment, quote or
// semicolon can be part of it.
var maintenance = regexp.MustCompile(`^(?i:\s*(` +
	`(repair|analyze)\s+tables?\s+[a-z0-9_$.,` + "`" + `\s]+` +
	`|flush\s+(privileges|status|user_resources|optimizer_costs|((binary|engine|error|general|relay|slow)\s+)?logs|tables?(\s+[a-z0-9_$.,` + "`" + `\s]+)?)` +
	`)\s*)$`)

// control begins the statements that only say where a transaction begins and ends.
var control = regexp.MustCompile(`^(?i:begin|commit|rollback|savepoint|xa)\b`)

// content is what the transaction that is being read consists of so far.
type content struct {
	// statement is the text of its only event, if that is a statement.
	statement string
	events    int
	// checksum is how many bytes of each event are one; -1 while that is not known.
	checksum int
}

// begin another transaction.
func (c *content) begin() { c.statement, c.events = "", 0 }

// add an event of it; body is nil when it is too long to be looked at.
func (c *content) add(kind byte, body []byte) {
	switch kind {
	case typeFormat:
		c.checksum = checksumOf(body)
	case typePrevious, typeRotate, typeStop: // of no transaction
	case typeQuery:
		c.statement = statementOf(body, c.checksum)
		c.events++
	default:
		c.events++
	}
}

// isMaintenance: it is one statement of maintenance, and nothing else. A repair from the
// dictionary alone may throw rows away.
func (c *content) isMaintenance() bool {
	return c.events == 1 && maintenance.MatchString(c.statement) &&
		!strings.Contains(strings.ToLower(c.statement), "use_frm")
}

// checksumOf reads the last five bytes of a Format event: how events are checked, and its own.
func checksumOf(body []byte) int {
	if len(body) < checksumSize+1 {
		return -1
	}
	switch body[len(body)-checksumSize-1] {
	case checksumNone:
		return 0
	case checksumCRC32:
		return checksumSize
	default:
		return -1
	}
}

// statementOf is the text of a Query event that ended without an error; "" if it cannot be
// told.
func statementOf(body []byte, checksum int) string {
	if checksum < 0 || len(body) < queryHead+checksum {
		return ""
	}
	begin := queryHead + int(binary.LittleEndian.Uint16(body[offsetStatusSize:])) + int(body[offsetSchemaSize]) + 1
	end := len(body) - checksum
	if binary.LittleEndian.Uint16(body[offsetQueryError:]) != 0 || begin > end || body[begin-1] != 0 {
		return ""
	}
	text := body[begin:end]
	if bytes.IndexByte(text, 0) >= 0 {
		return ""
	}
	return string(text)
}

// shown is a statement for people, on one line.
func shown(statement string) string {
	line := strings.Join(strings.Fields(statement), " ")
	if len(line) > maxStatementShown {
		line = strings.ToValidUTF8(line[:maxStatementShown], "") + "…"
	}
	return line
}
