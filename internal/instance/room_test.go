package instance

import (
	"errors"
	"log/slog"
	"testing"
)

// A volume that does not tell says nothing new; what it told last is not forgotten for that.
func TestRoomIsNotKnownBeforeTheVolumeTells(t *testing.T) {
	var err error = errors.New("stale file handle")
	r := &roomMeter{log: slog.New(slog.DiscardHandler),
		measure: func() (uint64, uint64, error) { return 50, 1000, err }}
	r.measureOnce()
	if now := r.known(); now != nil {
		t.Errorf("of a volume that told nothing it says %+v", now)
	}
	err = nil
	r.measureOnce()
	err = errors.New("stale file handle")
	r.measureOnce()
	if now := r.known(); now == nil || now.Free != 50 || now.Size != 1000 || !now.Low {
		t.Errorf("it says %+v", now)
	}
	r.at = r.at.Add(-roomLife)
	if now := r.known(); now != nil {
		t.Errorf("long after the volume told it says %+v", now)
	}
}
