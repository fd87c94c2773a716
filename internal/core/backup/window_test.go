package backup

import (
	"testing"
	"time"
)

func TestWindow(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{"1d": day, "30d": 30 * day, "8w": 56 * day, "12m": 372 * day,
		"9999m": 36525 * day} {
		if got, err := Window(text); err != nil || got != want {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "0d", "07d", "-1d", "7", "7h", "7dd", "7d ", "1.5d", "99999d", "+7d"} {
		if got, err := Window(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}
