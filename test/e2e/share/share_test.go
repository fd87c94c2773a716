package share

import (
	"strings"
	"testing"
)

// TestWhoGetsAClusterThatIsThere plays steps one after the other: "ok" ones give back what they
// promised, "failed" and "early" ones do not get so far, and "late" ones fail after it.
func TestWhoGetsAClusterThatIsThere(t *testing.T) {
	needs := map[string]Need{"keeps": {Instances: 3, Keeping: true}, "spends": {Instances: 3},
		"makes": {Making: true, Keeping: true}}
	for name, c := range map[string]struct {
		alone bool
		keep  bool
		steps string
		want  string
	}{
		"played alone by its name":    {false, false, "keeps:ok", "make"},
		"the one that makes, alone":   {false, false, "makes:ok", "-"},
		"shared":                      {false, false, "makes:ok keeps:ok keeps:ok", "- - -"},
		"after one that failed":       {false, false, "makes:ok keeps:failed keeps:ok keeps:ok", "- - empty+make -"},
		"after making failed":         {false, false, "makes:failed keeps:ok", "- empty+make"},
		"after one that keeps none":   {false, false, "makes:ok spends:ok keeps:ok keeps:ok", "- - empty+make -"},
		"after the last that failed":  {false, false, "keeps:ok spends:failed spends:ok", "make - empty+make"},
		"made when there is one":      {false, false, "keeps:ok makes:ok keeps:ok", "make empty -"},
		"each alone":                  {true, false, "makes:ok keeps:ok keeps:ok", "- empty+make empty+make"},
		"failed after giving it back": {false, false, "keeps:late keeps:ok", "make empty+make"},
		"kept":                        {false, true, "keeps:ok keeps:failed keeps:ok keeps:ok", "make - over"},
		"kept, each alone":            {true, true, "keeps:ok keeps:late keeps:ok", "make empty+make over"},
		"kept, and none failed":       {false, true, "keeps:ok spends:ok keeps:ok", "make - empty+make"},
		"after one that ended early":  {false, false, "keeps:ok keeps:early keeps:ok", "make - empty+make"},
	} {
		s := Shared{Alone: c.alone, Keep: c.keep}
		var got []string
		for _, step := range strings.Fields(c.steps) {
			if s.IsOver() {
				got = append(got, "over")
				break
			}
			of, ends, _ := strings.Cut(step, ":")
			empty, made := s.Before(needs[of])
			got = append(got, map[[2]bool]string{{false, false}: "-", {true, false}: "empty", {false, true}: "make",
				{true, true}: "empty+make"}[[2]bool{empty, made}])
			if ends == "ok" || ends == "late" {
				s.GivenBack(needs[of])
			}
			if ends == "failed" || ends == "late" {
				s.Failed()
			}
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s: before %s is done %q, want %q", name, c.steps, got, c.want)
		}
	}
}
