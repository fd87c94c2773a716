//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"cnmsql.co/test/e2e/share"
)

// all is set by `make test-all`. Without it, only what `make test` has room for is
// played; docs/tests.md says which belongs where, and why.
var all = flag.Bool("all", false, "play every story and every step, as make test-all does")

// Who plays a step: `make test` and `make test-all`, or the latter only.
const (
	always = false
	inAll  = true
)

// step is one capability or one fault of a story.
type step struct {
	name string
	play func(*world)
	// inAll: `make test` leaves it out.
	inAll bool
	needs share.Need
}

// leftOut are the names of what was not played.
var leftOut []string

// onlyInAll skips a story or a step in `make test`.
func onlyInAll(t *testing.T) {
	t.Helper()
	if !*all {
		leftOut = append(leftOut, t.Name())
		t.Skip("only make test-all plays it")
	}
}

// sayLeftOut tells in one line what was not played.
func sayLeftOut() {
	if len(leftOut) > 0 {
		fmt.Fprintf(os.Stderr, "e2e: %d left out, which make test-all plays: %s\n", len(leftOut),
			strings.Join(leftOut, " "))
	}
}

// playInTurn plays steps that build on each other, up to the first that fails. What one needs
// of those before it cannot be made in seconds: else it is a step of a story.
func (w *world) playInTurn(steps []step) {
	for _, s := range steps {
		if !w.t.Run(s.name, func(t *testing.T) {
			s.mayBeLeftOut(t)
			s.play(w.in(t))
		}) {
			return
		}
	}
}

func (s step) mayBeLeftOut(t *testing.T) {
	t.Helper()
	if s.inAll {
		onlyInAll(t)
	}
}
