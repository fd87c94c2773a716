package core_test

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// heard is one that listens to a manager that was started with it.
type heard struct {
	core.Hearing
	start time.Time
}

// at is what the manager says when its clock shows taken, for a question of asked.
func at(asked, taken time.Duration) core.Moments {
	return core.Moments{Asked: int64(asked), Taken: int64(taken), Made: int64(taken)}
}

// age is how old a report is that was asked for and arrives at moments of our clock.
func (h *heard) age(t *testing.T, m core.Moments, begun, now time.Duration) time.Duration {
	t.Helper()
	read, isNew := h.Hear("b", m, h.start.Add(begun), h.start.Add(now))
	if !isNew {
		t.Fatalf("it is taken for older than the last")
	}
	age := h.start.Add(now).Sub(read)
	if age < 0 {
		t.Errorf("it counts as read %s after it was received", -age)
	}
	return age
}

// A stream that stands for hours says how long ago it was asked for by a clock that may run
// faster than ours.
func TestAnOldStreamMeasuresNoClock(t *testing.T) {
	h := heard{start: time.Unix(1e9, 0)}
	const hour, late = time.Hour, time.Hour + 2*time.Minute
	h.age(t, at(0, time.Second), 0, time.Second)
	// The instance's clock won a second in this hour.
	h.age(t, at(hour+time.Second, hour+time.Second), hour, hour)
	if !h.IsMeasured() {
		t.Fatal("an answer does not measure")
	}
	if age := h.age(t, at(0, late+time.Second+time.Millisecond), 0, late); age > time.Second || age < 0 {
		t.Errorf("a report of an old stream is %s old", age)
	}
	if age := h.age(t, at(late, late+2*time.Second), late, late); age > 50*time.Millisecond {
		t.Errorf("an answer after the measurement has expired is %s old", age)
	}
}

// Our machine stands still for three seconds, and its clock with it; the manager's goes on. No
// report was read after it was received, and a question that is asked after that measures again.
func TestAClockThatStoodStillIsNotMeasuredBy(t *testing.T) {
	const stun, ms = 3 * time.Second, time.Millisecond
	h := heard{start: time.Unix(1e9, 0)}
	if age := h.age(t, at(0, 0), 0, 0); age > ms || !h.IsMeasured() {
		t.Errorf("before, it is %s old", age)
	}
	if h.age(t, at(0, stun+20*ms), 0, 20*ms); h.IsMeasured() {
		t.Error("what was measured before is believed after")
	}
	if h.age(t, at(0, stun+21*ms), 0, 21*ms); h.IsMeasured() {
		t.Error("the stream, which was asked for before, measures")
	}
	if age := h.age(t, at(stun+22*ms, stun+22*ms), 22*ms, 22*ms); age > ms || !h.IsMeasured() {
		t.Errorf("a question after that does not measure: it is %s old", age)
	}
	if age := h.age(t, at(0, stun+23*ms), 0, 23*ms); age > ms || !h.IsMeasured() {
		t.Errorf("the stream after that is %s old", age)
	}
}

// An answer and the stream may overtake each other, and another manager begins anew.
func TestWhatWasMadeEarlierIsNotHeard(t *testing.T) {
	h := heard{start: time.Unix(1e9, 0)}
	h.age(t, at(0, 2*time.Second), 0, 2*time.Second)
	if _, isNew := h.Hear("b", at(0, time.Second), h.start, h.start.Add(3*time.Second)); isNew {
		t.Error("what was made before the last report is heard")
	}
	read, isNew := h.Hear("c", at(0, 0), h.start.Add(4*time.Second), h.start.Add(5*time.Second))
	if want := h.start.Add(4 * time.Second); !isNew || !read.Equal(want) {
		t.Errorf("another manager's first report counts as read at %s, %t; want %s", read, isNew, want)
	}
}
