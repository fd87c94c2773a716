package tell

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"cnmsql.co/internal/core"
)

func TestALongMessageIsCutToWhatTheAPIServerTakes(t *testing.T) {
	to := events.NewFakeRecorder(1)
	for name, k := range map[string]struct{ message, end string }{
		"short":              {"all is well, 100%s", "100%s"},
		"as long as it may":  {strings.Repeat("a", noteLimit), "aaa"},
		"too long":           {strings.Repeat("a", noteLimit+1), "aa…"},
		"two bytes, even":    {strings.Repeat("é", noteLimit), "éé…"},
		"two bytes, odd":     {"a" + strings.Repeat("é", noteLimit), "éé…"},
		"the end is 4 bytes": {strings.Repeat("a", noteLimit-5) + strings.Repeat("🐬", 9), "aa…"},
	} {
		Event(to, &corev1.Pod{}, core.Event{Warning: true, Reason: core.ReasonActionFailed, Message: k.message})
		got, told := strings.CutPrefix(<-to.Events, "Warning ActionFailed ")
		if !told || len(got) > noteLimit || !utf8.ValidString(got) || !strings.HasSuffix(got, k.end) {
			t.Errorf("%s: %d bytes that end in %q", name, len(got), got[max(0, len(got)-12):])
		}
	}
}

// The API server takes an action of 128 bytes at most.
func TestTheSameTextHasTheSameAction(t *testing.T) {
	long := core.Reason(strings.Repeat("R", 100))
	if a, b := action(long, "making db-1"), action(long, "making db-1"); a != b || len(a) > 128 {
		t.Errorf("%s and %s", a, b)
	}
	if a, b := action("X", "read 10.0.0.1:53412: reset"), action("X", "read 10.0.0.1:53413: reset"); a != b {
		t.Errorf("another port makes another event: %s and %s", a, b)
	}
	if a, b := action(long, "making db-1"), action(long, "making db-2"); a == b {
		t.Errorf("two texts have the action %s", a)
	}
}
