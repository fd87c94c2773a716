package operator

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestAnOperatorWithoutAnAPIServerWaits holds that it does not end: it would be started again after ever longer
// pauses.
func TestAnOperatorWithoutAnAPIServerWaits(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	err := Run(ctx, &rest.Config{Host: "http://127.0.0.1:1"}, Options{MetricsAddress: "0", ProbeAddress: "0"})
	if err != nil || ctx.Err() == nil {
		t.Errorf("it ended before it was told to, or with an error: %v", err)
	}
}
