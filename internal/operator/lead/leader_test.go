package lead

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// aLease is a lease that is kept in memory.
type aLease struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
	writes int
	fail   error
}

func (l *aLease) Identity() string { return "me_1_10.0.0.1:8081" }

func (l *aLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r := l.record
	return &r, []byte(r.HolderIdentity), l.fail
}

func (l *aLease) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	if l.fail == nil {
		l.record, l.writes = r, l.writes+1
	}
	return l.fail
}

const other = "other_2_10.0.0.2:8081"

// standby looks at a lease that another one has, who is reached while up is true.
func standby(t *testing.T) (lock *leaderLock, lease *aLease, up *atomic.Bool) {
	t.Helper()
	up, lease = new(atomic.Bool), &aLease{record: resourcelock.LeaderElectionRecord{HolderIdentity: other}}
	up.Store(true)
	watch := &leaderWatch{dial: func(_ context.Context, address string) error {
		if address != "10.0.0.2:8081" || !up.Load() {
			return errors.New("connection refused")
		}
		return nil
	}}
	watch.reachesOthers = func(context.Context, string) bool { return true }
	return &leaderLock{Interface: lease, watch: watch, log: logr.Discard()}, lease, up
}

func (l *leaderLock) seenHolder(t *testing.T) string {
	t.Helper()
	r, _, err := l.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r.HolderIdentity
}

func TestALeaderThatIsNotReachedAnyMoreLosesItsLeaseEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock, lease, up := standby(t)
		lock.seenHolder(t)
		go lock.watch.run(t.Context())
		time.Sleep(5*time.Second + leaseLook/5) // between two looks
		if lock.seenHolder(t) != other {
			t.Error("a leader that is reached loses its lease")
		}
		up.Store(false)
		lease.fail = errors.New("the API server does not answer")
		if _, _, err := lock.Get(t.Context()); err == nil {
			t.Error("an error is not told")
		}
		lease.fail = nil
		time.Sleep(leaderSilence - leaseLook)
		if lock.seenHolder(t) != other {
			t.Errorf("it loses its lease before %s", leaderSilence)
		}
		time.Sleep(2 * leaseLook)
		if lock.seenHolder(t) != "" {
			t.Error("it keeps its lease though it is gone")
		}
	})
}

func TestALeaderThatWasNeverReachedKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock, lease, up := standby(t)
		up.Store(false)
		go lock.watch.run(t.Context())
		for range 20 {
			if lock.seenHolder(t) != other {
				t.Fatal("who may be out of reach for reasons of the network loses its lease")
			}
			time.Sleep(time.Second)
		}
		lease.record.HolderIdentity = "third_3" // an operator from before, or without an address
		for range 10 {
			if lock.seenHolder(t) != "third_3" {
				t.Fatal("who tells no address loses its lease")
			}
			time.Sleep(time.Second)
		}
	})
}

func TestWhoIsCutOffItselfDoesNotTakeTheLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock, _, up := standby(t)
		var others atomic.Bool
		others.Store(true)
		lock.watch.reachesOthers = func(context.Context, string) bool { return others.Load() }
		lock.seenHolder(t)
		go lock.watch.run(t.Context())
		time.Sleep(5 * time.Second)
		up.Store(false)
		others.Store(false)
		for range 60 {
			if lock.seenHolder(t) == "" {
				t.Fatal("a standby that reaches nobody takes the lead")
			}
			time.Sleep(time.Second)
		}
		others.Store(true) // it is the leader that is out of reach, or has been gone since
		time.Sleep(leaderMisses * 2 * leaseLook)
		if lock.seenHolder(t) != "" {
			t.Error("a leader that is not reached while others are keeps its lease")
		}
	})
}

func TestASuccessorIsWatchedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock, lease, up := standby(t)
		lock.seenHolder(t)
		go lock.watch.run(t.Context())
		time.Sleep(2 * time.Second)
		up.Store(false)
		lease.record.HolderIdentity = "other_9_10.0.0.2:8081" // the same Pod, another process
		for range 10 {
			if lock.seenHolder(t) == "" {
				t.Fatal("it loses its lease for what its predecessor was")
			}
			time.Sleep(time.Second)
		}
	})
}

func TestTheLeaderWritesOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock, lease, _ := standby(t)
		mine := resourcelock.LeaderElectionRecord{HolderIdentity: lock.Identity()}
		for range 21 { // as often as it is tried in ten seconds
			if err := lock.Update(t.Context(), mine); err != nil {
				t.Fatal(err)
			}
			time.Sleep(leaseLook)
		}
		if lease.writes != 11 {
			t.Errorf("%d writes in ten seconds", lease.writes)
		}
		lock.seenHolder(t)
		free := resourcelock.LeaderElectionRecord{}
		if err := lock.Update(t.Context(), free); err != nil || lease.record.HolderIdentity != "" {
			t.Errorf("it is not given back at once: %v", err)
		}
		lease.fail = errors.New("conflict")
		if lock.Update(t.Context(), mine) == nil {
			t.Error("a write that failed is told as one that did not")
		}
	})
}

// A leader that ends may find that another has taken the lead meanwhile.
func TestALeaseThatAnotherHasIsNotGivenBack(t *testing.T) {
	lock, lease, _ := standby(t)
	must(t, lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: lock.Identity()}))
	lease.record.HolderIdentity = other
	lock.seenHolder(t)
	must(t, lock.Update(t.Context(), resourcelock.LeaderElectionRecord{}))
	if lease.record.HolderIdentity != other {
		t.Error("the lease of another is given back")
	}
}

func TestWhoRefusesAConnectionIsThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := listener.Addr().String()
	must(t, dial(t.Context(), address))
	must(t, listener.Close())
	if err := dial(t.Context(), address); err != nil {
		t.Errorf("a process that ends counts as a node that is lost: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if dial(ended, address) == nil {
		t.Error("no answer counts as one")
	}
}

func TestTheIdentityTellsWhereTheLeaderIsReached(t *testing.T) {
	for _, c := range []struct{ address, probes, want string }{
		{"10.0.0.7", ":8081", "10.0.0.7:8081"}, {"fd00::7", ":8081", "[fd00::7]:8081"}, {"", ":8081", ""},
		{"10.0.0.7", "0", ""},
	} {
		if got := addressIn(leaderIdentity("pod-x-1", "id", c.address, c.probes)); got != c.want {
			t.Errorf("%s %s: %q", c.address, c.probes, got)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
