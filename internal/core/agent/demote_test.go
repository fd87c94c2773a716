package agent

import "testing"

func TestOnlyADemotionTakesBackThatMysqldMayWrite(t *testing.T) {
	for _, c := range []struct {
		about    string
		was      Writes
		readOnly bool
		want     Writes
	}{
		{"as it was promoted", Writes{true, 4}, false, Writes{true, 4}},
		{"somebody made the primary read-only", Writes{true, 4}, true, Writes{true, 0}},
		{"and it was not demoted yet", Writes{true, 0}, true, Writes{true, 0}},
		{"a replica", Writes{}, true, Writes{}},
		{"somebody made a replica writable", Writes{}, false, Writes{true, 0}},
	} {
		got, ended := c.was.Found(c.readOnly)
		if got != c.want || ended != (c.was.Epoch != c.want.Epoch) {
			t.Errorf("%s: %+v, ended: %v; want %+v", c.about, got, ended, c.want)
		}
	}
}
