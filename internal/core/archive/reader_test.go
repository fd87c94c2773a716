package archive

import (
	"testing"

	"cnmsql.co/internal/gtid"
)

// TestAServerThatWasSetBack reports what a server lacks of what was seen of its logs: own numbers or a group's.
func TestAServerThatWasSetBack(t *testing.T) {
	const own, group = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "aaaaaaaa-71ca-11e1-9e33-c80aa9429562"
	for name, c := range map[string]struct{ seen, executed, lost string }{
		"it went on":                     {own + ":1-10", own + ":1-12", ""},
		"all was seen":                   {own + ":1-10", own + ":1-10", ""},
		"nothing was seen":               {"", own + ":1-10", ""},
		"it is at an earlier state":      {own + ":1-10", own + ":1-8", own + ":9-10"},
		"it was reset":                   {own + ":1-10", "", own + ":1-10"},
		"numbers of a group are missing": {own + ":1," + group + ":1-5", own + ":1-2," + group + ":1-4", group + ":5"},
	} {
		set := func(text string) gtid.Set {
			if text == "" {
				return gtid.Set{}
			}
			return gtid.MustParse(text)
		}
		r := Reader{Seen: set(c.seen)}
		if got := r.SetBack(set(c.executed)); !got.Equal(set(c.lost)) {
			t.Errorf("%s: it lacks %s, not %s", name, got, c.lost)
		}
	}
}
