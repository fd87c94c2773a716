package instance

import "time"

// processBegan is what every ticker counts from.
var processBegan = time.Now()

// ticker ticks at the whole multiples of its period since the process began, so that what many do each second
// is done in one go: what costs a manager at rest is waking up. Whoever takes a tick says so by again at once.
type ticker struct {
	*time.Timer
	every time.Duration
}

func newTicker(every time.Duration) *ticker {
	t := &ticker{time.NewTimer(every), every}
	t.again()
	return t
}

// again has it tick at the next multiple. As with a time.Ticker, that tick waits for who is busy meanwhile, and
// later ones are left out.
func (t *ticker) again() { t.Reset(t.left()) }

// sooner has it tick after a wait, unless it ticks before that anyway.
func (t *ticker) sooner(wait time.Duration) {
	if wait < t.left() {
		t.Reset(wait)
	}
}

// left is how long it is to the next multiple. The clock of a test may be before the process began.
func (t *ticker) left() time.Duration {
	over := time.Since(processBegan) % t.every
	if over < 0 {
		return -over
	}
	return t.every - over
}
