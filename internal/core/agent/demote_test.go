package agent

import "testing"

func TestOnlyADemotionTakesBackThatMysqldMayWrite(t *testing.T) {
	for _, c := range []struct {
		about           string
		was             Writes
		super, readOnly bool
		want            Writes
	}{
		{"as it was promoted", Writes{May: true, Epoch: 4}, false, false, Writes{May: true, Epoch: 4}},
		{"somebody made the primary read-only", Writes{May: true, Epoch: 4}, true, true, Writes{May: true, Epoch: 0}},
		{"somebody made it so for all but administrators", Writes{May: true, Epoch: 4}, false, true,
			Writes{May: true, Epoch: 0}},
		{"and it was not demoted yet", Writes{May: true, Epoch: 0}, true, true, Writes{May: true, Epoch: 0}},
		{"a replica", Writes{}, true, true, Writes{}},
		{"somebody made a replica writable", Writes{}, false, false, Writes{May: true, Epoch: 0}},
		{"it follows an external server", Writes{true, 4, "old"}, true, true, Writes{true, 4, "old"}},
		{"somebody opened one that does", Writes{false, 4, "old"}, false, false, Writes{May: true}},
		{"somebody made it so for administrators", Writes{}, false, true, Writes{May: true, Epoch: 0}},
	} {
		got, ended := c.was.Found(c.super, c.readOnly)
		if got != c.want || ended != (c.was.Epoch != c.want.Epoch) {
			t.Errorf("%s: %+v, ended: %v; want %+v", c.about, got, ended, c.want)
		}
	}
}
