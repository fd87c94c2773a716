package instance

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// roomLife is how long a measure is good. A volume that hangs may not tell how much is free.
const roomLife = 10 * time.Second

// roomMeter measures how much of the data's volume is free. It is not diskTrier's business: that
// tries the volume where something is written to it, and this one may hang anywhere.
type roomMeter struct {
	log *slog.Logger
	// measure tells how many bytes are free, and how many there are.
	measure func() (free, size uint64, err error)

	mu   sync.Mutex
	last *core.Room // nil while there was no measure
	at   time.Time
}

func newRoomMeter(m *manager) *roomMeter { return &roomMeter{log: m.log, measure: m.opt.Room} }

// keepMeasuring wakes nobody: what follows from it is looked at with every answer of mysqld.
func (r *roomMeter) keepMeasuring(ctx context.Context) {
	tick := newTicker(roomInterval)
	defer tick.Stop()
	for {
		r.measureOnce()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.again()
		}
	}
}

func (r *roomMeter) measureOnce() {
	free, size, err := r.measure()
	if err != nil || size == 0 {
		r.log.Debug("cannot read how much of the volume is free", "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := agent.RoomOf(r.last, free, size)
	switch wasLow := r.last != nil && r.last.Low; {
	case now.Low && !wasLow:
		r.log.Warn("the volume is nearly full: raise spec.storage.size, or free space", "free", free, "size", size)
	case wasLow && !now.Low:
		r.log.Info("the volume is no longer nearly full", "free", free, "size", size)
	}
	r.last, r.at = now, time.Now()
}

// known is how much of the volume is free; nil while that is not known.
func (r *roomMeter) known() *core.Room {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) > roomLife {
		return nil
	}
	return r.last
}
