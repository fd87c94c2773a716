package archive

import (
	"fmt"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

const server = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

// has is what a server has executed that has written so many transactions.
func has(n int) gtid.Set {
	if n == 0 {
		return gtid.Set{}
	}
	return gtid.MustParse(fmt.Sprintf("%s:1-%d", server, n))
}

func logName(n int) string { return fmt.Sprintf("binlog.%06d", n) }

// What goes: all logs before the n-th.
func roomTo(n int) Room     { return Room{To: logName(n)} }
func roomGap(n int) Room    { return Room{To: logName(n), Gap: true} }
func roomNeeded(n int) Room { return Room{To: logName(n), Needed: true} }

// eightLogs have ten transactions and 20 bytes each. They were written to 13, 12, 11 … minutes ago.
func eightLogs(now time.Time) []Log {
	logs := make([]Log, 8)
	for i := range logs {
		logs[i] = Log{Name: logName(i + 1), Size: 20, Began: core.Known(has(10*i), now, now),
			Written: now.Add(time.Duration(i-13) * time.Minute)}
	}
	return logs
}

// The volume has 1000 bytes: below 100 it is nearly full, and below 50 the need is dire.
func TestWhatNobodyElseNeedsMakesRoom(t *testing.T) {
	const little, dire = 99, 0
	var nothing Room
	now := time.Unix(1_000_000, 0)
	away, inGroup := Others{}, Others{Grouped: true, Copied: true}
	online, few := Others{Attached: true, Grouped: true, Copied: true}, Others{Grouped: true}
	holding := func(o Others, n int) Others { o.Held = has(n); return o }
	for name, c := range map[string]struct {
		needed int
		others Others
		free   uint64
		want   Room
	}{
		"a replica is away, and nothing is known of it":   {8, away, dire, nothing},
		"it is away, and had the first two":               {8, holding(away, 29), dire, roomTo(3)},
		"only as much goes as has to":                     {8, holding(away, 70), little, roomTo(2)},
		"it had what is not archived":                     {2, holding(away, 70), dire, roomTo(2)},
		"it had all, and some are fresh":                  {8, holding(away, 70), dire, roomTo(5)},
		"no member is away, and all have all":             {8, holding(online, 70), little, roomTo(2)},
		"they do not have all yet":                        {8, holding(online, 9), little, nothing},
		"nobody knows what they have":                     {8, online, little, nothing},
		"nobody knows that, in dire need":                 {8, online, 20, roomNeeded(3)},
		"they have what is not archived":                  {1, holding(online, 20), dire, roomGap(3)},
		"one may lack what is not archived":               {1, online, dire, nothing},
		"a member is away, and had two":                   {8, holding(inGroup, 20), 30, roomTo(3)},
		"a member is away, and may need what goes":        {8, holding(inGroup, 10), 20, roomNeeded(3)},
		"it may need it, and the need is not dire":        {8, inGroup, 50, nothing},
		"a member is away: what is not archived stays":    {3, inGroup, dire, roomNeeded(3)},
		"it is away, had it, and it is not archived":      {1, holding(inGroup, 70), dire, nothing},
		"half of a group is away, and may need what goes": {8, few, dire, nothing},
		"half of it is away, and had it":                  {8, holding(few, 70), little, roomTo(2)},
		"what is archived goes before what is not":        {2, holding(online, 70), 20, roomGap(3)},
	} {
		if got := MakeRoom(eightLogs(now), logName(c.needed), c.others, c.free, 1000, now); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	logs := eightLogs(now)
	logs[1].Began = core.Fact[gtid.Set]{}
	if got := MakeRoom(logs, "binlog.000008", holding(away, 70), dire, 1000, now); got != (Room{}) {
		t.Errorf("of a log of which nobody knows what it has: %+v", got)
	}
}

// Numbers that an earlier purge took are nobody's affair: the logs that are there do not have them.
func TestWhatWasPurgedBeforeIsNotAskedFor(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	others := Others{Held: has(50).Subtract(has(20)), Grouped: true}
	got := MakeRoom(eightLogs(now)[2:], "binlog.000008", others, 60, 1000, now)
	if want := roomTo(5); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestWhoHasWhatABinaryLogHas(t *testing.T) {
	names := []string{"db-2", "db-3"}
	for name, c := range map[string]struct {
		names []string
		noted map[string]gtid.Set
		want  gtid.Set
	}{
		"what each of them had":             {names, map[string]gtid.Set{"db-2": has(7), "db-3": has(5)}, has(5)},
		"nothing is known of one":           {names, map[string]gtid.Set{"db-2": has(7)}, has(0)},
		"nothing is known of the other":     {names, map[string]gtid.Set{"db-3": has(7)}, has(0)},
		"nobody knows who they are":         {nil, map[string]gtid.Set{"db-2": has(7)}, has(0)},
		"who is none of them has no say":    {names[:1], map[string]gtid.Set{"db-2": has(7), "db-3": has(5)}, has(7)},
		"a set that nobody could read":      {names, nil, has(0)},
		"what one alone has does not count": {names, map[string]gtid.Set{"db-2": has(7), "db-3": has(0)}, has(0)},
	} {
		if got := Replicas(false, c.names, c.noted); !got.Held.Equal(c.want) || got.Attached || got.Copied {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestTheWordOfAGroupCountsWhileAllAreOnline(t *testing.T) {
	names := []string{"db-1", "db-2", "db-3"}
	noted := map[string]gtid.Set{"db-1": has(4), "db-2": has(3), "db-3": has(5)}
	member := func(host string, state core.MemberState) core.ViewMember {
		return core.ViewMember{Host: host + ".db.shop", State: state}
	}
	one, two, three := member("db-1", core.MemberOnline), member("db-2", core.MemberOnline),
		member("db-3", core.MemberOnline)
	const all, word = true, 9 // what the group says that all have
	for name, c := range map[string]struct {
		names            []string
		view             []core.ViewMember
		attached, copied bool
		held             int
	}{
		"all are online": {names, []core.ViewMember{one, two, three}, all, true, word},
		"one has left":   {names, []core.ViewMember{one, two}, false, true, 3},
		"two have left":  {names, []core.ViewMember{one}, false, false, 3},
		"one of two has": {names[:2], []core.ViewMember{one}, false, false, 3},
		"one recovers": {names, []core.ViewMember{one, two, member("db-3", core.MemberRecovering)}, false,
			true, 3},
		"two recover": {names, []core.ViewMember{one, member("db-2", core.MemberRecovering),
			member("db-3", core.MemberRecovering)}, false, false, 3},
		"one cannot be reached": {names, []core.ViewMember{one, two, member("db-3", core.MemberUnreachable)}, false,
			true, 3},
		"a stranger joins": {names, []core.ViewMember{one, two, three, member("db-4", core.MemberRecovering)}, false,
			true, 3},
		"another one stands in for it": {names, []core.ViewMember{one, two, member("db-30", core.MemberOnline)}, false,
			true, 3},
		"this server is in no group":         {names, nil, false, false, 3},
		"nobody knows who the instances are": {nil, []core.ViewMember{one, two, three}, false, false, 0},
	} {
		got := Members(c.names, &core.GroupView{Members: c.view}, has(word), noted)
		if got.Attached != c.attached || !got.Held.Equal(has(c.held)) || !got.Grouped || got.Copied != c.copied {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
