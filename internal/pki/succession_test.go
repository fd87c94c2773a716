package pki

import (
	"bytes"
	"testing"
	"time"
)

func TestWhatIsShownIsComparedWithItsSuccessor(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	old, next := authorityAt(t, now.Add(-2000*day)), authorityAt(t, now.Add(-day))
	issue := func(by Bundle, made time.Time, trust ...[]byte) Bundle {
		ca, err := ParseCA(by)
		if err != nil {
			t.Fatal(err)
		}
		b, err := ca.Issue(InstanceLeaf("db-1", "ns"), made)
		if err != nil {
			t.Fatal(err)
		}
		b.CA = bytes.Join(trust, nil)
		return b
	}
	fresh := issue(old, now, old.Cert)
	for what, c := range map[string]struct {
		shown, next Bundle
		is          Succession
	}{
		"the same":                   {fresh, fresh, InTime},
		"renewed, and good for long": {issue(old, now.Add(-300*day), old.Cert), fresh, InTime},
		"renewed, and ends soon":     {issue(old, now.Add(-336*day), old.Cert), fresh, Ending},
		"not renewed, and ends soon": {issue(old, now.Add(-336*day), old.Cert), issue(old, now.Add(-336*day), old.Cert),
			InTime},
		"renewed, and has ended":  {issue(old, now.Add(-366*day), old.Cert), fresh, Severed},
		"another authority":       {fresh, issue(next, now, next.Cert), Severed},
		"both are trusted by now": {fresh, issue(old, now, old.Cert, next.Cert), Overlapping},
		"both are trusted, and signs": {issue(old, now, old.Cert, next.Cert),
			issue(next, now, old.Cert, next.Cert), Overlapping},
		"the new one signs too early": {fresh, issue(next, now, old.Cert, next.Cert), Severed},
		"the old one is taken out": {issue(next, now, old.Cert, next.Cert),
			issue(next, now, next.Cert), Overlapping},
		"it is taken out too early": {issue(old, now, old.Cert, next.Cert), issue(next, now, next.Cert), Severed},
	} {
		if got, err := Succeeds(c.shown, c.next, now); err != nil || got != c.is {
			t.Errorf("%s: %v, %v, and not %v", what, got, err, c.is)
		}
	}
	if _, err := Succeeds(Bundle{}, fresh, now); err == nil {
		t.Error("a certificate that is none was compared")
	}
}

func authorityAt(t *testing.T, made time.Time) Bundle {
	t.Helper()
	b, err := NewCA("db", made)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
