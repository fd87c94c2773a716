package instance

import (
	"testing"
	"testing/synctest"
	"time"
)

// init has tickers count from when the clock of synctest begins: whole seconds there, as from a time.Ticker.
func init() { processBegan = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC) }

// Tickers that began at different moments tick in the same one, so that one wake does for all.
func TestTickersTickTogetherWheneverTheyBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := newTicker(time.Second)
		<-time.After(300 * time.Millisecond)
		two := newTicker(500 * time.Millisecond)
		first, second := <-one.C, <-two.C
		if apart := second.Sub(first) % (500 * time.Millisecond); apart != 0 {
			t.Errorf("one ticks %s before the other", apart)
		}
	})
}

// Who is busy when it is time finds one tick afterwards, and is not held up until the next; many that were
// missed are one.
func TestATickWaitsForWhoIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tick := newTicker(time.Second)
		<-tick.C
		tick.again()
		<-time.After(2500 * time.Millisecond)
		began := time.Now()
		<-tick.C
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a tick that was due was waited for %s", waited)
		}
		tick.again()
		<-tick.C
		if waited := time.Since(began); waited != 500*time.Millisecond {
			t.Errorf("the tick after it came after %s, not at the next multiple", waited)
		}
		tick.again()
		tick.sooner(20 * time.Millisecond)
		began = time.Now()
		<-tick.C
		if waited := time.Since(began); waited != 20*time.Millisecond {
			t.Errorf("one that was wanted after 20 ms came after %s", waited)
		}
	})
}
