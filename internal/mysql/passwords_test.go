package mysql

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestTheNewestPasswordStandsFirstAndNoneStandsTwice(t *testing.T) {
	var p Passwords
	for _, password := range []string{"a", "b", "c", "b"} {
		p = p.with(password)
	}
	for password, want := range map[string]int{"b": 0, "c": 1, "a": 2, "d": -1, "": -1} {
		if got := p.Place(password); got != want {
			t.Errorf("%q has place %d, want %d", password, got, want)
		}
	}
	for i := range 2 * passwordsKept {
		p = p.with(fmt.Sprint(i))
	}
	if len(p) != passwordsKept || p.Place("a") != -1 {
		t.Errorf("%d are kept", len(p))
	}
	text := p.attribute()
	var a attributes
	if err := json.Unmarshal([]byte(text), &a); err != nil || a.Cnmsql.Passwords.Place("11") != 0 {
		t.Errorf("read back from %s: %v", text, err)
	}
	if strings.Contains(text, `"11"`) {
		t.Errorf("a password stands in %s", text)
	}
	if got := (Passwords{"", "$A$005$short", "by hand"}).Place("x"); got != -1 {
		t.Errorf("what is no hash has place %d", got)
	}
}
