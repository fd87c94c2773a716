// Package printable makes texts fit to be shown that somebody else wrote: an instance, or whoever may
// patch an object of Kubernetes. It knows nothing of where they are shown.
package printable

import (
	"strings"
	"unicode"
)

// Text returns a text with a space in the place of each rune that is not printable. What is left
// cannot move the cursor of a terminal, reverse what stands after it, begin another line of a table,
// or end a comment of YAML, whose lines end with U+0085, U+2028 and U+2029, too.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}
