package instance

import (
	"context"
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// What a manager notes of a copy and of its end, in either order.
func TestHowFarACopyWasDoesNotHideWhyItFailed(t *testing.T) {
	var s cloneState
	ctx, stop := context.WithCancel(context.Background())
	s.notes(ctx, &core.Clone{Percent: 10})
	stop()
	s.progress = &core.Clone{Error: "no space"}
	s.failed(time.Now())
	s.notes(ctx, &core.Clone{Percent: 20})
	s.foundFailed("no space, says mysqld", time.Now())
	if s.lastError() != "no space" || s.failures != 1 {
		t.Errorf("after %d failures the last is %q", s.failures, s.lastError())
	}
}
