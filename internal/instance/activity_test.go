package instance

import (
	"context"
	"errors"
	"io"
	"testing"

	"cnmsql.co/internal/core/agent"
)

// occupant is the manager of activities, as they ask it.
type occupant struct {
	of *activities
	// during is what went on when a problem was noted; err is that problem.
	during agent.Activity
	err    error
}

func (o *occupant) setProblem(err error) { o.during, o.err = o.of.current(), err }
func (o *occupant) retell()              {}

func newOccupant() *occupant {
	o := &occupant{of: &activities{log: newLogger(io.Discard, "error")}}
	o.of.by = o
	return o
}

// TestWhatFailsIsAProblemBeforeItIsOver holds the order: else somebody decides, in between, that nothing goes on and
// nothing is wrong.
func TestWhatFailsIsAProblemBeforeItIsOver(t *testing.T) {
	o, full := newOccupant(), errors.New("the volume is full")
	goOn := make(chan struct{})
	must(t, o.of.begin(agent.Initializing, func(context.Context) error { <-goOn; return full }))
	over := o.of.over
	if now := o.of.current(); now != agent.Initializing {
		t.Errorf("begun, it says %q", now)
	}
	close(goOn)
	<-over
	if !errors.Is(o.err, full) || o.during != agent.Initializing {
		t.Errorf("it noted %v, while %q went on", o.err, o.during)
	}
	if now := o.of.current(); now != agent.NoActivity {
		t.Errorf("over, it says %q", now)
	}
	if o.of.cancel(nil) != nil {
		t.Error("over, it can be ended")
	}
}

func TestWhatIsEndedIsNoProblem(t *testing.T) {
	o := newOccupant()
	must(t, o.of.begin(agent.Cloning, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }))
	over := o.of.cancel(nil)
	if over == nil {
		t.Fatal("what goes on cannot be ended")
	}
	<-over
	if o.err != nil || o.of.current() != agent.NoActivity {
		t.Errorf("ended, it noted %v and says %q", o.err, o.of.current())
	}
}
