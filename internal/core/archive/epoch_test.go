package archive

import (
	"testing"
	"time"

	"cnmsql.co/internal/gtid"
)

// TestABackupThatWentOnDuringAFailoverIsOfTheLaterEpoch: it was begun in epoch 1, and holds
// what the primary of epoch 2 wrote.
func TestABackupThatWentOnDuringAFailoverIsOfTheLaterEpoch(t *testing.T) {
	const a, b = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
	archived := Archive{Branches: []Branch{
		{Epoch: 1, ServerUUID: a},
		{Epoch: 2, ServerUUID: b, Start: gtid.MustParse(a + ":1-10")},
	}}
	base := func(end string) Base { return Base{Epoch: 1, End: gtid.MustParse(end), Time: time.Unix(1, 0)} }
	if s := Select(archived, base(a+":1-10,"+b+":1-3"), Target{}, nil); s.Refusal != nil {
		t.Errorf("refused: %v", s.Refusal)
	}
	for _, end := range []string{a + ":1-11", a + ":1-11," + b + ":1-3"} {
		if s := Select(archived, base(end), Target{}, nil); s.Refusal == nil || s.Refusal.Reason != BackupNotOnBranch {
			t.Errorf("%s: lost in the failover, and not refused: %+v", end, s)
		}
		if s := Select(archived, base(end), Target{Kind: Immediate}, nil); s.Refusal != nil {
			t.Errorf("%s: refused without a replay: %v", end, s.Refusal)
		}
	}
}
