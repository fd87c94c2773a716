package instance

import (
	"os"
	"runtime"
	"sync"
)

// cores is how many threads of this process run Go at once. A manager waits most of the time, and
// each time that something wakes it, Go's scheduler wakes a second thread to look for more to do:
// where there is nothing, that is a third of what a manager costs. So it runs on one, but while
// it restores or archives.
var cores struct {
	mu    sync.Mutex
	rests bool
	users int
}

// RestOnOneCore has this process run on one core while it has no bulk work. A user's GOMAXPROCS
// is left as it is.
func RestOnOneCore() {
	if os.Getenv("GOMAXPROCS") != "" {
		return
	}
	cores.mu.Lock()
	defer cores.mu.Unlock()
	cores.rests = true
	runtime.GOMAXPROCS(1)
}

// useAllCores gives the process as many cores as it may have, until done is called.
func useAllCores() (done func()) {
	cores.mu.Lock()
	defer cores.mu.Unlock()
	if cores.users++; cores.rests && cores.users == 1 {
		runtime.SetDefaultGOMAXPROCS()
	}
	return sync.OnceFunc(func() {
		cores.mu.Lock()
		defer cores.mu.Unlock()
		if cores.users--; cores.rests && cores.users == 0 {
			runtime.GOMAXPROCS(1)
		}
	})
}
