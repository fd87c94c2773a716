package operator

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

// send has a manager sent its successor, and waits until it is known what came of it.
func (s *succession) send(t *testing.T, answer error) (came core.Successor, before error) {
	t.Helper()
	over := make(chan struct{})
	before = s.replace(func() error { return answer }, func() { close(over) })
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		t.Fatal("nobody is told that it is over")
	}
	return s.came(), before
}

func TestWhatCameOfASuccessorIsKnownToWhoeverDecides(t *testing.T) {
	s, noRoom := &succession{}, errors.New("no space left on device")
	came, before := s.send(t, noRoom)
	if before != nil || came.Failed != 1 || came.Why != noRoom.Error() || came.Sent.IsZero() || came.Since.IsZero() {
		t.Errorf("after the first failure: %v, %+v", before, came)
	}
	since := came.Since
	came, before = s.send(t, nil)
	if !errors.Is(before, noRoom) || came.Failed != 1 {
		t.Errorf("it was accepted: %v, %+v", before, came)
	}
	// It is asked for again only because the manager is still the former one.
	came, before = s.send(t, nil)
	if !errors.Is(before, errStillThere) || came.Failed != 2 || came.Why != errStillThere.Error() ||
		came.Since != since {
		t.Errorf("it was accepted, and is still there: %v, %+v", before, came)
	}
}

func TestABinaryIsSentOnceAtATime(t *testing.T) {
	s, goOn, over := &succession{}, make(chan struct{}), make(chan struct{})
	_ = s.replace(func() error { <-goOn; return nil }, func() { close(over) })
	_ = s.replace(func() error { t.Error("it is sent twice"); return nil }, func() {})
	if came := s.came(); came != (core.Successor{}) {
		t.Errorf("it is under way, and %+v came of it", came)
	}
	close(goOn)
	<-over
}

// What came of it ends with the Pod: nothing is kept of instances that are gone, and nothing is
// told of another Pod of the name.
func TestWhatCameOfASuccessorEndsWithItsPod(t *testing.T) {
	st := &stream{to: endpoint{podUID: "first", address: "10.0.0.1"}}
	st.succession().send(t, errors.New("no space left on device"))
	same := &stream{to: endpoint{podUID: "first", address: "10.0.0.1"}}
	same.follow(st)
	if got := same.look().successor.Failed; got != 1 {
		t.Errorf("by another certificate, it failed %d times", got)
	}
	next := &stream{to: endpoint{podUID: "second", address: "10.0.0.1"}}
	next.follow(st)
	if got := next.look().successor; got != (core.Successor{}) {
		t.Errorf("of the next Pod it is said: %+v", got)
	}
	r := operatorOf(t, newFake(t).Build())
	err := r.streams.ReplaceManager("ns", "c-1")
	if !errors.Is(err, errNoStream) {
		t.Errorf("nobody was ever reached, and %v", err)
	}
}

// TestASuccessionThatCameAboutIsOver: the manager that was sent another binary is not there any more. One
// that starts later with the former binary has refused nothing.
func TestASuccessionThatCameAboutIsOver(t *testing.T) {
	old, noRoom := core.Report{Boot: "a", Manager: core.Binary{Digest: "old"}}, errors.New("no space left on device")
	for name, tc := range map[string]struct {
		next core.Report
		over bool
	}{
		"it is the same":        {next: core.Report{Boot: "a", Manager: old.Manager, State: core.Stopped}},
		"its successor answers": {next: core.Report{Boot: "b", Manager: core.Binary{Digest: "new"}}, over: true},
		"it was started again":  {next: core.Report{Boot: "b", Manager: old.Manager}, over: true},
	} {
		st := &stream{to: endpoint{podUID: "first", address: "10.0.0.1"}}
		st.hear(control.Snapshot{Report: old}, time.Now())
		st.succession().send(t, noRoom)
		st.succession().send(t, noRoom)
		st.succession().send(t, nil)
		st.lose(errors.New("it goes on as another"))
		st.hear(control.Snapshot{Report: tc.next}, time.Now())
		if got := st.look().successor; (got == core.Successor{}) != tc.over {
			t.Errorf("%s: of the former one it is said: %+v", name, got)
		}
	}
}

// TestAManagerThatIsBusyHasNotFailed: it is asked again after the same pauses, and the count of failures
// begins again where one follows the other.
func TestAManagerThatIsBusyHasNotFailed(t *testing.T) {
	s, noRoom := &succession{}, errors.New("no space left on device")
	busy := &control.Refusal{Reason: core.OrderBusy, Message: "Backup is under way"}
	for n, step := range []struct {
		answer error
		failed int
		busy   bool
	}{{noRoom, 1, false}, {noRoom, 2, false}, {busy, 1, true}, {fmt.Errorf("asking: %w", busy), 2, true},
		{noRoom, 1, false}, {&control.Refusal{Reason: core.OrderBinaryRefused}, 2, false}} {
		before := s.came().Since
		came, _ := s.send(t, step.answer)
		if came.Failed != step.failed || came.Busy != step.busy || (came.Since != before) != (step.failed == 1) ||
			came.Why != step.answer.Error() {
			t.Errorf("step %d: %+v", n, came)
		}
	}
}
