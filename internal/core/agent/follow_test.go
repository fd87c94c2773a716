package agent

import (
	"testing"

	"cnmsql.co/internal/gtid"
)

func TestWhoHasReceivedMoreThanItsPrimaryHoldsDoesNotFollowYet(t *testing.T) {
	const a, b = "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b"
	follow := Follow{Instance: "db-2", Known: gtid.MustParse(a + ":1-9, " + b + ":1-2")}
	for _, retrieved := range []string{"", a + ":5-9", a + ":9, " + b + ":1"} {
		if err := follow.Refuses(gtid.MustParse(retrieved)); err != nil {
			t.Errorf("has received %q: %v", retrieved, err)
		}
	}
	const want = a + ":10 was received after it was decided to follow db-2: it is decided again"
	if err := follow.Refuses(gtid.MustParse(a + ":5-10")); err == nil || err.Error() != want {
		t.Errorf("has received one more: %v", err)
	}
}
