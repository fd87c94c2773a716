package instance

import (
	"testing"
	"testing/synctest"
	"time"

	"cnmsql.co/internal/core"
)

// A primary looks every core.FenceLook whether it has to fence itself, and from before it is
// opened on. One that takes no writes shows that it would look.
func TestWhoOpensIsLookedAfterAtOnceAndWhoRestsNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(Options{Instance: "db-1"}.withDefaults())
		m.lease = &lease{}
		go m.keepFencing(t.Context())
		longest := func(during time.Duration) (most time.Duration) {
			for end := time.Now().Add(during); time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
				most = max(most, m.fencing.silentFor(m.began))
			}
			return most
		}
		longest(time.Minute)
		if most := longest(time.Minute); most < fenceRest-20*time.Millisecond || most > fenceRest {
			t.Errorf("at rest, there were %s between two looks", most)
		}
		m.opensForWrites()
		if most := longest(time.Minute); most > core.FenceLook {
			t.Errorf("open for writes, there were %s between two looks", most)
		}
		m.update(func(s *state) { s.mysqld.mayWrite = false })
		longest(time.Second)
		if most := longest(time.Minute); most < fenceRest-20*time.Millisecond {
			t.Errorf("closed again, there were never more than %s between two looks", most)
		}
	})
}

// While it is made read-only, mysqld says so before its sessions are closed. What follows from
// a server that takes no writes (the promise is told, the lease is given back) waits for that.
func TestADemotionIsOverWhenItWasCarriedThrough(t *testing.T) {
	m := newManager(Options{Instance: "db-1"}.withDefaults())
	m.update(func(s *state) { s.mysqld.mayWrite, s.mysqld.writable = true, 3 })
	readOnly := &core.Server{SuperReadOnly: true}
	for _, c := range []struct {
		about string
		stops bool
		epoch int64
	}{
		{"this manager makes it read-only", true, 3},
		{"somebody has made it read-only", false, 0},
	} {
		m.update(func(s *state) {
			s.mysqld.stopsWrites = c.stops
			m.noteWritable(readOnly)
		})
		if s := &m.st.mysqld; !s.mayWrite || s.writable != c.epoch {
			t.Errorf("%s: may write: %v, in epoch %d; want true, %d", c.about, s.mayWrite, s.writable, c.epoch)
		}
	}
	m.update(func(s *state) { s.mysqld.takesNoWrites() })
	if s := &m.st.mysqld; s.mayWrite || s.stopsWrites || s.writable != 0 {
		t.Errorf("it was demoted, and is known as %+v", s)
	}
}
