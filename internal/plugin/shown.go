package plugin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"cnmsql.co/internal/printable"
)

// cells prints a line of a table. Much in it was written by instances, and by whoever may patch an object: what
// is not printable would begin another cell or line, or steer the terminal.
func cells(w io.Writer, values ...string) {
	line := make([]string, len(values))
	for i, value := range values {
		line[i] = printable.Text(value)
	}
	_, _ = fmt.Fprintln(w, strings.Join(line, "\t"))
}

// sentence prints one line, of which cells tells why it is made printable.
func sentence(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintln(w, printable.Text(fmt.Sprintf(format, args...)))
}

// maxSaid is how many bytes of what a command in a Pod says are kept; as many as the operator reads of an instance.
const maxSaid = 4 << 20

var errSaysTooMuch = errors.New("what it says is longer than 4 MiB, and was not read to its end")

// kept keeps what a command in a Pod says, which nobody but the Pod bounds.
type kept struct {
	said bytes.Buffer // not embedded: its ReadFrom has no bound
	// stop ends the command, of which client-go would read on.
	stop func()
	over bool
}

// Write keeps p, and ends the command when there is no room for it.
func (k *kept) Write(p []byte) (int, error) {
	if k.over = k.over || k.said.Len()+len(p) > maxSaid; k.over {
		k.stop()
		return 0, errSaysTooMuch
	}
	return k.said.Write(p)
}

func (k *kept) String() string { return k.said.String() }
