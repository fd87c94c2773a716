package clone

import (
	"encoding/binary"
)

// nullColumn stands where a row has no value.
const nullColumn = 0xfb

// query asks for one text: a statement whose result has one column and one row.
func (c *conn) query(statement string) (string, error) {
	if err := c.command(append([]byte{comQuery}, statement...)); err != nil {
		return "", err
	}
	columns, err := c.read()
	switch {
	case err != nil:
		return "", err
	case len(columns) > 0 && columns[0] == replyError:
		return "", parseError(columns)
	case len(columns) != 1 || columns[0] != 1:
		return "", refuse(Malformed, "an answer of %d bytes to a question for one column", len(columns))
	}
	if _, err := c.read(); err != nil { // what the column is
		return "", err
	}
	if err := c.endOfRows(); err != nil {
		return "", err
	}
	row, err := c.read()
	if err != nil {
		return "", err
	}
	value, err := parseRow(row)
	if err != nil {
		return "", err
	}
	return value, c.endOfRows()
}

// endOfRows reads the packet that ends the columns, and the one that ends the rows.
func (c *conn) endOfRows() error {
	p, err := c.read()
	switch {
	case err != nil:
		return err
	case len(p) > 0 && p[0] == replyError:
		return parseError(p)
	case len(p) != 5 || p[0] != replySwitch: // EOF begins with the same byte: 2 for warnings, 2 for the status
		return refuse(Malformed, "a packet of %d bytes where an end is due", len(p))
	}
	return nil
}

// parseRow reads a row of one column: the length of its text, in 1 byte, or in 2 behind 0xfc, and the text.
func parseRow(row []byte) (string, error) {
	if len(row) > 0 && row[0] == replyError {
		return "", parseError(row)
	}
	if len(row) > 0 && row[0] < nullColumn && int(row[0]) == len(row)-1 {
		return string(row[1:]), nil
	}
	if len(row) >= 3 && row[0] == 0xfc && int(binary.LittleEndian.Uint16(row[1:])) == len(row)-3 {
		return string(row[3:]), nil
	}
	return "", refuse(Malformed, "a row of %d bytes", len(row))
}
