package sim

import (
	"time"
	"unsafe"
)

// clock is one machine's: a monotonic clock that runs a little too fast or too
// slow, and stands still where a hypervisor stops it, and a wall clock that jumps.
type clock struct {
	// drift in parts per million.
	drift int64
	// wall is how far the wall clock is off.
	wall time.Duration
	// stops are when it stood still.
	stops []stop
}

// stop is when a clock stood still, and how long.
type stop struct{ from, took time.Duration }

// stop has it stand still, from now on or since it stands still already, until another moment.
func (c *clock) stop(now, until time.Duration) {
	for _, s := range c.stops {
		now = max(now, s.from+s.took)
	}
	if now < until {
		c.stops = append(c.stops, stop{now, until - now})
	}
}

// stood is for how long it has stood still, or will, all together.
func (c *clock) stood() (all time.Duration) {
	for _, s := range c.stops {
		all += s.took
	}
	return all
}

// since1970 is where the world begins, on a right wall clock.
const since1970 = 1_767_265_200 * time.Second

// monotonic is the machine's own measure of the world's time.
func (c *clock) monotonic(t time.Duration) time.Duration {
	world := t
	for _, s := range c.stops {
		t -= min(max(world-s.from, 0), s.took)
	}
	return t + time.Duration(int64(t/time.Microsecond)*c.drift/1000)
}

// now is what time.Now would return on the machine.
func (c *clock) now(t time.Duration) time.Time {
	m := c.monotonic(t)
	return forge(since1970+m+c.wall, m+time.Second)
}

// forge makes a time.Time with a wall and a monotonic reading that are
// independent of each other, as they are after the wall clock was set. The
// standard library can only read both from the machine; its representation (a bit
// for "has monotonic", 33 bits of seconds since 1885, 30 bits of nanoseconds) has
// not changed since Go 1.9, and a test holds this against it.
func forge(sinceEpoch, monotonic time.Duration) time.Time {
	const from1885to1970 = (85*365 + 20) * 24 * 60 * 60
	seconds := uint64(sinceEpoch/time.Second) + from1885to1970
	nanos := uint64(sinceEpoch % time.Second)
	var t time.Time
	raw := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&t))
	raw.wall = 1<<63 | seconds<<30 | nanos
	raw.ext = int64(monotonic)
	return t
}

// kept is a time as the API keeps it: the wall's, in microseconds.
func kept(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Microsecond)
}
