package agent

import "testing"

func TestOnlyADemotionTakesBackThatMysqldMayWrite(t *testing.T) {
	for _, c := range []struct {
		about           string
		was             Writes
		super, readOnly bool
		want            Writes
	}{
		{"as it was promoted", Writes{true, 4}, false, false, Writes{true, 4}},
		{"somebody made the primary read-only", Writes{true, 4}, true, true, Writes{true, 0}},
		{"somebody made it so for all but administrators", Writes{true, 4}, false, true, Writes{true, 0}},
		{"and it was not demoted yet", Writes{true, 0}, true, true, Writes{true, 0}},
		{"a replica", Writes{}, true, true, Writes{}},
		{"somebody made a replica writable", Writes{}, false, false, Writes{true, 0}},
		{"somebody made it so for administrators", Writes{}, false, true, Writes{true, 0}},
	} {
		got, ended := c.was.Found(c.super, c.readOnly)
		if got != c.want || ended != (c.was.Epoch != c.want.Epoch) {
			t.Errorf("%s: %+v, ended: %v; want %+v", c.about, got, ended, c.want)
		}
	}
}
