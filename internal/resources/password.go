package resources

import (
	"fmt"
	"io"
)

const (
	alphabet       = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	passwordLength = 32
)

// password is 190 bits of chance in letters and digits, which need no quoting
// in SQL, in a URI or in a shell.
func password(random io.Reader) (string, error) {
	// The largest multiple of the alphabet's size: what lies above would make
	// the first letters likelier.
	const limit = byte(256 / len(alphabet) * len(alphabet))
	out := make([]byte, 0, passwordLength)
	var b [1]byte
	for len(out) < passwordLength {
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return "", fmt.Errorf("making a password: %w", err)
		}
		if b[0] < limit {
			out = append(out, alphabet[int(b[0])%len(alphabet)])
		}
	}
	return string(out), nil
}
