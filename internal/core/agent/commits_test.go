package agent

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// A commit that stands still on a full volume waits for space, and nothing else does.
func TestCommitsLackSpace(t *testing.T) {
	full, ample := &core.Room{Full: true}, &core.Room{}
	says := func(owned, executed string, waits int) *core.Server {
		return &core.Server{Owned: set(owned), Executed: set(executed), SemiSync: core.SemiSync{WaitSessions: waits}}
	}
	hangs, idle, goesOn := says("a:10", "a:1-9", 0), says("", "a:1-9", 0), says("a:11", "a:1-10", 0)
	type look struct {
		after time.Duration
		says  *core.Server
		room  *core.Room
	}
	for _, c := range []struct {
		what  string
		looks []look
		is    bool
	}{
		{"long enough", []look{{0, hangs, full}, {spacePatience, hangs, full}}, true},
		{"not for long", []look{{0, hangs, full}, {spacePatience - 1, hangs, full}}, false},
		{"there is space", []look{{0, hangs, ample}, {spacePatience, hangs, ample}}, false},
		{"nobody knows", []look{{0, hangs, nil}, {spacePatience, hangs, nil}}, false},
		{"nothing is written", []look{{0, idle, full}, {spacePatience, idle, full}}, false},
		{"waits for a replica", []look{{0, says("a:10", "a:1-9", 1), full}, {spacePatience, hangs, full}}, false},
		{"one has ended", []look{{0, hangs, full}, {spacePatience, goesOn, full}}, false},
		{"a receiver goes on", []look{{0, hangs, full}, {spacePatience, says("a:10", "a:1-9,b:1", 0), full}}, false},
		{"not tried again", []look{{0, hangs, full}, {spacePatience, hangs, full}, {time.Minute, hangs, ample}}, true},
		{"goes on", []look{{0, hangs, full}, {spacePatience, hangs, full}, {time.Minute, goesOn, ample}}, false},
	} {
		now, began := Commits{}, time.Now()
		for _, l := range c.looks {
			now = now.Note(l.says, l.room, began.Add(l.after))
		}
		if now.LackSpace != c.is {
			t.Errorf("%s: %t", c.what, now.LackSpace)
		}
	}
}
