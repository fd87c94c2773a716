package agent

import (
	"testing"

	"cnmsql.co/internal/core"
)

// A volume is nearly full below a tenth, until somewhat more is free again; and full when mysqld
// would not be started, until twice as much is free.
func TestAVolumeIsLowOrFullUntilThereIsMoreThanTheBound(t *testing.T) {
	const size = 1000 << 20
	low, fine, full := &core.Room{Low: true}, &core.Room{}, &core.Room{Low: true, Full: true}
	for _, c := range []struct {
		before    *core.Room
		free      uint64
		low, full bool
	}{
		{nil, 100 << 20, false, false},
		{nil, 99 << 20, true, false},
		{fine, 110 << 20, false, false},
		{low, 110 << 20, true, false},
		{low, 120 << 20, false, false},
		{low, 16 << 20, true, false},
		{low, 16<<20 - 1, true, true},
		{fine, 0, true, true},
		{full, 16 << 20, true, true},
		{full, 32<<20 - 1, true, true},
		{full, 32 << 20, true, false},
		{nil, 31 << 20, true, false},
	} {
		got := RoomOf(c.before, c.free, size)
		if got.Low != c.low || got.Full != c.full || got.Free != c.free || got.Size != size {
			t.Errorf("%d MiB free after %+v: %+v", c.free>>20, c.before, got)
		}
	}
}
