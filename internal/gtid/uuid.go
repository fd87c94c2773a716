package gtid

import "encoding/hex"

// uuid names the server a transaction was first committed on.
type uuid [16]byte

// parseUUID reads the UUID that text begins with and returns its length, or
// where it goes wrong and the reason.
func parseUUID(text string) (id uuid, n int, reason string) {
	braces := at(text, 0) == '{'
	if braces {
		n++
	}
	// Dashes stand in all four places or in none, and braces require them.
	dashes := braces || at(text, n+8) == '-'
	for i := range id {
		if dashes && (i == 4 || i == 6 || i == 8 || i == 10) {
			if at(text, n) != '-' {
				return id, n, `expected "-" in the UUID`
			}
			n++
		}
		for range 2 {
			digit, ok := hexDigit(at(text, n))
			if !ok {
				return id, n, "expected a UUID of 32 hexadecimal digits"
			}
			id[i] = id[i]<<4 | digit
			n++
		}
	}
	if braces {
		if at(text, n) != '}' {
			return id, n, `expected "}" behind the UUID`
		}
		n++
	}
	return id, n, ""
}

// at returns 0, which no syntax knows, behind the end.
func at(text string, i int) byte {
	if i >= len(text) {
		return 0
	}
	return text[i]
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case isDigit(c):
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// appendTo appends the canonical text: lower case, with dashes.
func (id uuid) appendTo(out []byte) []byte {
	out = hex.AppendEncode(out, id[:4])
	for _, section := range [][]byte{id[4:6], id[6:8], id[8:10], id[10:]} {
		out = hex.AppendEncode(append(out, '-'), section)
	}
	return out
}
