package mysql

import (
	"math"
	"testing"
	"time"
)

// TestForEverIsTheLongestTimeThatTheServerTakes: "never degrades" was a timeout of a day elsewhere.
// A longer one than this is cut to it by the server, with a warning only.
func TestForEverIsTheLongestTimeThatTheServerTakes(t *testing.T) {
	if Forever.Milliseconds() != math.MaxUint32 || Forever < 49*24*time.Hour {
		t.Errorf("a commit waits for %s", Forever)
	}
}
