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
