package instance

import (
	"testing"
	"testing/synctest"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// A primary looks whether it has to isolate itself in the moment in which its lease has run out, or is gone,
// and every core.IsolationLook from then on. One that has its lease, or takes no writes, shows that it would look.
func TestWhoOpensIsLookedAfterAtOnceAndWhoRestsNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(Options{Instance: "db-1"}.withDefaults())
		m.lease = &lease{}
		go m.isolator.keepIsolating(t.Context())
		longest := func(during time.Duration) (most time.Duration) {
			for end := time.Now().Add(during); time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
				most = max(most, m.isolator.silentFor())
			}
			return most
		}
		longest(5 * time.Second)
		if most := longest(time.Minute); most < core.IsolationRest-20*time.Millisecond || most > core.IsolationRest {
			t.Errorf("at rest, there were %s between two looks", most)
		}
		m.mayTakeWrites(7)
		must(t, m.opensForWrites(7))
		longest(core.LeaseGrace - 10*time.Millisecond)
		time.Sleep(15 * time.Millisecond)
		synctest.Wait()
		if silent := m.isolator.silentFor(); silent >= 15*time.Millisecond {
			t.Errorf("its lease ran out, and it had looked last %s before", silent)
		}
		if most := longest(time.Minute); most > core.IsolationLook {
			t.Errorf("without its lease, there were %s between two looks", most)
		}
		m.update(func(s *state) { s.mysqld.mayWrite = false })
		longest(time.Second)
		if most := longest(time.Minute); most < core.IsolationRest-20*time.Millisecond {
			t.Errorf("closed again, there were never more than %s between two looks", most)
		}
	})
}

// A lease may be gone before its time, when the record is somebody else's.
func TestWhoseLeaseIsGoneIsLookedAfterAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(Options{Instance: "db-1"}.withDefaults())
		m.lease = &lease{}
		go m.isolator.keepIsolating(t.Context())
		m.mayTakeWrites(7)
		must(t, m.opensForWrites(7))
		time.Sleep(core.IsolationRest + 5*time.Millisecond)
		synctest.Wait()
		m.lease.drop(7)
		m.leases.tellIfGone()
		synctest.Wait()
		if silent := m.isolator.silentFor(); silent != 0 {
			t.Errorf("its lease is gone, and it had looked last %s before", silent)
		}
	})
}

// mayTakeWrites lets an instance in epoch 7, which has the lease.
func (m *manager) mayTakeWrites(epoch int64) {
	m.lease.hold(epoch, time.Now())
	m.update(func(s *state) {
		s.volume.locked = true
		s.cluster.view = &agent.Cluster{Epoch: epoch, Instances: 3, Lease: true,
			Members:   []string{"db-1", "db-2", "db-3"},
			Promotion: &core.Promotion{Epoch: epoch, Instance: "db-1", Leased: true}}
	})
}

// From the decision to the moment in which mysqld is told to accept writes, the lease runs on: it
// may have taken long to get there.
func TestItOpensOnlyWithALeaseThatHasNotRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(Options{Instance: "db-1"}.withDefaults())
		m.lease = &lease{}
		m.mayTakeWrites(7)
		if err := m.opensForWrites(6); err == nil {
			t.Error("it opens in an epoch that has ended")
		}
		time.Sleep(core.LeaseGrace + time.Second)
		if err := m.opensForWrites(7); err == nil {
			t.Error("it opens with a lease that has run out")
		}
		if _, may := m.mayWrite(); may {
			t.Error("it is said to take writes, and was not opened")
		}
		m.lease.hold(7, time.Now())
		must(t, m.opensForWrites(7))
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
