package backup

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"cnmsql.co/internal/clone"
)

func TestALostDonorIsBegunAnewUnderOtherNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory()
		var first []string
		lost := func(attempt, record int) error {
			switch {
			case attempt == 1 && record == 12:
				synctest.Wait()
				first = s.keys("part-")
				return fmt.Errorf("in the middle: %w", clone.ConnectionLost)
			case attempt == 2 && record == 1:
				return fmt.Errorf("it has not noticed: %w", clone.CloneRunning)
			}
			return nil
		}
		m, err := take(t.Context(), from(scene(4), lost), s, options())
		must(t, err)
		if len(first) == 0 {
			t.Error("nothing was uploaded by the first attempt")
		}
		for _, key := range first {
			if len(s.keys(key)) > 0 {
				t.Errorf("%s is left, or was written again", key)
			}
		}
		if m.BeginGTID.Count() != 3 {
			t.Errorf("it begins with %s, as attempts before it did", m.BeginGTID)
		}
		restorable(t, s, m)
	})
}

func TestADonorThatIsLostAgainAndAgainIsGivenUp(t *testing.T) {
	for why, want := range map[error]int{clone.ConnectionLost: 3, clone.DonorSilent: 3, clone.DonorStops: 3,
		clone.Encrypted: 1} {
		synctest.Test(t, func(t *testing.T) {
			s, attempts := newMemory(), 0
			_, err := take(t.Context(), from(scene(4), func(a, n int) error {
				if attempts = a; n == 12 {
					return why
				}
				return nil
			}), s, options())
			if !errors.Is(err, why) || attempts != want || len(s.keys(dirBase)) > 0 {
				t.Errorf("%v after %d attempts: %v; %q are left", why, attempts, err, s.keys(dirBase))
			}
		})
	}
}

// TestADonorThatServesAnotherIsWaitedFor has the clone of a Pod that is gone run on in the donor: for
// longer than the donor waits for it to take a write, and no longer. So is one waited for that is away.
func TestADonorThatServesAnotherIsWaitedFor(t *testing.T) {
	away := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for _, why := range []error{clone.CloneRunning, away} {
		for busy, is := range map[time.Duration]error{10*time.Minute + 30*time.Second: nil, time.Hour: why} {
			synctest.Test(t, func(t *testing.T) {
				s, began := newMemory(), time.Now()
				m, err := take(t.Context(), from(scene(4), func(_, n int) error {
					if n == 1 && time.Since(began) < busy {
						return fmt.Errorf("beginning: %w", why)
					}
					return nil
				}), s, options())
				if !errors.Is(err, is) || time.Since(began) > 12*time.Minute {
					t.Errorf("busy for %s: after %s: %v", busy, time.Since(began), err)
				}
				if is == nil && err == nil {
					restorable(t, s, m)
				}
			})
		}
	}
}

// TestADonorThatHasServedIsWaitedForAnew has one busy at first, and away in the middle of what it then served.
func TestADonorThatHasServedIsWaitedForAnew(t *testing.T) {
	away := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	synctest.Test(t, func(t *testing.T) {
		s, began, served := newMemory(), time.Now(), false
		m, err := take(t.Context(), from(scene(4), func(_, n int) error {
			switch {
			case n == 1 && time.Since(began) < DonorFrees-time.Minute:
				return clone.CloneRunning
			case n == 12 && !served:
				served = true
				time.Sleep(DonorFrees)
				return away
			}
			return nil
		}), s, options())
		must(t, err)
		restorable(t, s, m)
	})
}

// TestADonorThatIsAwayInEachAttemptIsGivenUp has one that takes each attempt, and is away in the middle of it.
func TestADonorThatIsAwayInEachAttemptIsGivenUp(t *testing.T) {
	away := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	synctest.Test(t, func(t *testing.T) {
		served, o := 0, options()
		_, err := take(t.Context(), from(scene(4), func(_, n int) error {
			if n == 12 {
				served++
				return away
			}
			return nil
		}), newMemory(), o)
		if !errors.Is(err, away) || served != 3 {
			t.Errorf("after %d attempts: %v", served, err)
		}
	})
}
