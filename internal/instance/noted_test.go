package instance

import (
	"context"
	"errors"
	"testing"
)

// What was broken off for an order to reboot the group is not told as a failure of that, and nothing waits.
func TestAJoinThatWasBrokenOffHasNotFailed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &memberState{}
	s.TakeReboot(3)
	s.noteTried(ctx, errors.New("refused"))
	s.TakeReboot(3)
	if s.Failed != "refused" || s.RebootEpoch != 3 {
		t.Errorf("failed: %q, epoch %d", s.Failed, s.RebootEpoch)
	}
	s.TakeReboot(4)
	cancel()
	s.noteTried(ctx, errors.New("the connection is gone"))
	if s.Failed != "" || s.RebootEpoch != 4 {
		t.Errorf("broken off: %q, epoch %d", s.Failed, s.RebootEpoch)
	}
	s.noteTried(ctx, nil)
	if s.RebootEpoch != 0 {
		t.Error("an order that was carried out stays")
	}
}
