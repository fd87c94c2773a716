package cores

import (
	"runtime"
	"testing"
)

// TestCoresAtRestAndAtWork is about the whole process, so it runs beside no other test.
func TestCoresAtRestAndAtWork(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	all := runtime.GOMAXPROCS(0)
	t.Cleanup(func() {
		state.rests = false
		runtime.GOMAXPROCS(all)
	})
	are := func(when string, want int) {
		t.Helper()
		if is := runtime.GOMAXPROCS(0); is != want {
			t.Errorf("%s: %d cores, want %d", when, is, want)
		}
	}
	UseAll()()
	are("before it was asked to rest", all)
	RestOnOne()
	are("at rest", 1)
	runtime.SetDefaultGOMAXPROCS()
	may := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(1)
	restored, archived := UseAll(), UseAll()
	are("at work", may)
	restored()
	restored()
	are("while one goes on", may)
	archived()
	are("at rest again", 1)
}

func TestAUsersNumberOfCoresStays(t *testing.T) {
	all := runtime.GOMAXPROCS(0)
	t.Setenv("GOMAXPROCS", "7")
	RestOnOne()
	if is := runtime.GOMAXPROCS(0); is != all || state.rests {
		t.Errorf("%d cores, want %d as before", is, all)
	}
}
