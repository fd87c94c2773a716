// Package cores decides on how many cores this process runs: on one while it only waits, on all
// that it may have while there is work for them.
package cores

import (
	"os"
	"runtime"
	"sync"
)

// state is how many threads of this process run Go at once. Instance managers, and an operator of
// few Clusters, wait most of the time, and each time that something wakes them, Go's scheduler
// wakes a second thread to look for more to do: where there is nothing, that is a fifth to a
// third of what they cost.
var state struct {
	mu    sync.Mutex
	rests bool
	users int
}

// RestOnOne has this process run on one core while nobody uses all. A user's GOMAXPROCS is left
// as it is.
func RestOnOne() {
	if os.Getenv("GOMAXPROCS") != "" {
		return
	}
	state.mu.Lock()
	defer state.mu.Unlock()
	state.rests = true
	runtime.GOMAXPROCS(1)
}

// UseAll gives the process as many cores as it may have, until done is called.
func UseAll() (done func()) {
	state.mu.Lock()
	defer state.mu.Unlock()
	if state.users++; state.rests && state.users == 1 {
		runtime.SetDefaultGOMAXPROCS()
	}
	return sync.OnceFunc(func() {
		state.mu.Lock()
		defer state.mu.Unlock()
		if state.users--; state.rests && state.users == 0 {
			runtime.GOMAXPROCS(1)
		}
	})
}
