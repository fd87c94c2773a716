package instance

import "testing"

func TestAClusterIsMadeAndReplicates(t *testing.T) {
	w := newWorld(t, nil)
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	w.join(two, one)
}
