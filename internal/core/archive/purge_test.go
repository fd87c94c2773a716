package archive

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWhichLogsMayGo(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	logs := func(ages ...int) (out []Log) {
		for i, hours := range ages {
			out = append(out, Log{Name: fmt.Sprintf("binlog.%06d", i+1),
				Written: now.Add(-time.Duration(hours) * time.Hour)})
		}
		return out
	}
	for name, c := range map[string]struct {
		logs   []Log
		needed string
		expire time.Duration
		want   string
	}{
		"those that have expired":         {logs(9, 8, 3, 0), "binlog.000004", 5 * time.Hour, "binlog.000003"},
		"but not what is not archived":    {logs(9, 8, 3, 0), "binlog.000002", 5 * time.Hour, "binlog.000002"},
		"nothing is archived":             {logs(9, 8, 3, 0), "binlog.000001", 5 * time.Hour, ""},
		"nothing has expired":             {logs(4, 3, 2, 0), "binlog.000004", 5 * time.Hour, ""},
		"what is archived is not known":   {logs(9, 8, 3, 0), "", 5 * time.Hour, ""},
		"the needed one is not there":     {logs(9, 8), "binlog.000007", 5 * time.Hour, ""},
		"logs never expire":               {logs(9, 8, 0), "binlog.000003", 0, ""},
		"a clock that went back":          {logs(9, -1, 9, 0), "binlog.000004", 5 * time.Hour, "binlog.000002"},
		"all but the one that is written": {logs(9, 8, 7), "binlog.000003", 5 * time.Hour, "binlog.000003"},
	} {
		if got := Purge(c.logs, c.needed, c.expire, now); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestNothingGoesThatIsNeededOrYoung, whatever the clocks were.
func TestNothingGoesThatIsNeededOrYoung(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_000_000, 0)
		var logs []Log
		for i := range rapid.IntRange(0, 8).Draw(t, "logs") {
			logs = append(logs, Log{Name: fmt.Sprintf("binlog.%06d", i+1),
				Written: now.Add(-time.Duration(rapid.IntRange(-5, 20).Draw(t, "age")) * time.Hour)})
		}
		needed := rapid.IntRange(0, 9).Draw(t, "needed")
		expire := time.Duration(rapid.IntRange(0, 20).Draw(t, "expire")) * time.Hour
		to := Purge(logs, fmt.Sprintf("binlog.%06d", needed), expire, now)
		gone := max(slices.IndexFunc(logs, func(l Log) bool { return l.Name == to }), 0)
		for i, l := range logs[:gone] {
			if i+1 >= needed || now.Sub(l.Written) < expire {
				t.Fatalf("%s goes, and log %d is needed, and logs expire after %s", l.Name, needed, expire)
			}
		}
	})
}

func TestWritesComeBeforeTheArchive(t *testing.T) {
	for free, holds := range map[uint64]bool{0: false, 9: false, 10: true, 100: true} {
		if HoldsBack(free, 100) != holds {
			t.Errorf("%d of 100 free: %t", free, !holds)
		}
	}
	if !HoldsBack(8<<30, 1<<40) || HoldsBack(8<<30-1, 1<<40) {
		t.Error("8 GiB of a large volume are room enough, and not less")
	}
	if HoldsBack(0, 0) {
		t.Error("a volume of which nothing is known")
	}
}

// TestWhatIsArchivedMakesRoomFirst: the volume has 1000 bytes, and each log 20.
func TestWhatIsArchivedMakesRoomFirst(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	logs := make([]Log, 8)
	for i := range logs {
		logs[i] = Log{Name: fmt.Sprintf("binlog.%06d", i+1), Size: 20, Written: now.Add(-fresh)}
	}
	for name, c := range map[string]struct {
		needed string
		away   bool
		free   uint64
		want   string
		gap    bool
	}{
		"there is room":                      {needed: "binlog.000008", free: 100},
		"no more than is needed goes":        {needed: "binlog.000008", free: 61, want: "binlog.000003"},
		"all that is archived, and not more": {needed: "binlog.000003", free: 50, want: "binlog.000003"},
		"what is not archived, in dire need": {needed: "binlog.000002", free: 20, want: "binlog.000003", gap: true},
		"nothing is archived":                {needed: "binlog.000001", free: 60},
		"nobody knows what is archived":      {needed: "", free: 31, want: "binlog.000002", gap: true},
		"nothing is archived, in dire need":  {needed: "binlog.000001", free: 0, want: "binlog.000004", gap: true},
		"a replica is away":                  {needed: "binlog.000008", free: 0, away: true},
		"the log that is written to stays":   {needed: "binlog.000008", free: 0, want: "binlog.000006"},
	} {
		got := MakeRoom(logs, c.needed, Others{Attached: !c.away}, c.free, 1000, now)
		if want := (Room{To: c.want, Gap: c.gap}); got != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if to := MakeRoom(logs[:1], "binlog.000001", Others{Attached: true}, 0, 1000, now).To; to != "" {
		t.Errorf("of one log up to %q", to)
	}
	if to := MakeRoom(logs, "binlog.000008", Others{Attached: true}, 0, 0, now).To; to != "" {
		t.Errorf("of a volume of which nothing is known up to %q", to)
	}
	for i := range logs {
		logs[i].Written = now.Add(-fresh + time.Second)
	}
	if to := MakeRoom(logs, "binlog.000008", Others{Attached: true}, 60, 1000, now).To; to != "" {
		t.Errorf("of logs that a replica may need up to %q", to)
	}
	if to := MakeRoom(logs, "binlog.000008", Others{Attached: true}, 40, 1000, now).To; to != "binlog.000002" {
		t.Errorf("of logs that a replica may need, in dire need, up to %q", to)
	}
	for i := range logs {
		logs[i].Size = 0
	}
	if to := MakeRoom(logs, "binlog.000003", Others{Attached: true}, 0, 1000, now).To; to != "binlog.000003" {
		t.Errorf("a gap that makes no room, up to %q", to)
	}
	if to := MakeRoom(logs, "binlog.000008", Others{Attached: true}, 0, 1000, now).To; to != "binlog.000008" {
		t.Errorf("with nothing to be had up to %q", to)
	}
}
