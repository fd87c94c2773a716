package pki

import (
	"bytes"
	"crypto/x509/pkix"
	"testing"
	"time"
)

// TestAnAuthorityGoesToAnotherWithNobodySevered holds each step against those before it: who joined at one step and
// who joins at the next verify each other.
func TestAnAuthorityGoesToAnotherWithNobodySevered(t *testing.T) {
	leaf := InstanceLeaf("db-1", "ns", "db-1")
	old, next := bundleOf(t, "db"), bundleOf(t, "db")
	announced := Kept{Bundle: old}.Announce(next)
	handed := announced.Hand()
	steps := []Kept{{Bundle: old}, announced, handed, handed.Forget()}
	var given Bundle
	for i, k := range steps {
		k = k.Known(now)
		ca, err := k.Parse()
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		before := given
		if given, err = ca.Keep(given, leaf, now); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			continue
		}
		if how, err := Succeeds(before, given, now); err != nil || how != Overlapping {
			t.Errorf("step %d: %v, %v", i, how, err)
		}
		if k.Changes() != (i < 3) {
			t.Errorf("step %d: it changes: %t", i, k.Changes())
		}
	}
	if last := steps[3]; !bytes.Equal(last.Key, next.Key) || !bytes.Equal(last.CA, next.Cert) {
		t.Error("in the end the new one is not alone")
	}
}

// TestWhatALostAuthoritySignedIsKept until all trust another, whatever else a certificate lacks.
func TestWhatALostAuthoritySignedIsKept(t *testing.T) {
	lost, by := parsed(t, bundleOf(t, "db")), bundleOf(t, "db")
	shown, err := lost.Issue(InstanceLeaf("db-1", "ns", "db-1"), now)
	if err != nil {
		t.Fatal(err)
	}
	k := Replace(Shown(shown, now), by).Known(now)
	wished := InstanceLeaf("db-1", "ns", "db-1", "more")
	keep := func(k Kept, b Bundle, at time.Time) Bundle {
		t.Helper()
		ca, err := k.Parse()
		if err != nil {
			t.Fatal(err)
		}
		if b, err = ca.Keep(b, wished, at); err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := keep(k, shown, now)
	if !bytes.Equal(first.Cert, shown.Cert) || !bytes.Equal(first.CA, k.CA) {
		t.Error("it is made anew, or does not trust the new one")
	}
	if how, err := Succeeds(shown, first, now); err != nil || how != Overlapping {
		t.Errorf("who joined with it: %v, %v", how, err)
	}
	if !StaysGood(keep(k, shown, now.Add(leafLife+time.Hour)), by.Cert, now) {
		t.Error("one that has ended is kept")
	}
	if !StaysGood(keep(k, Bundle{}, now), by.Cert, now) {
		t.Error("who has none is given none")
	}
	second := keep(k.Hand(), first, now)
	if how, err := Succeeds(first, second, now); err != nil || how != Overlapping ||
		!StaysGood(second, by.Cert, now) {
		t.Errorf("once all trust it: %v, %v", how, err)
	}
	if left := k.Hand().Forget(); left.Changes() || !bytes.Equal(left.CA, by.Cert) {
		t.Errorf("in the end it is %+v", left)
	}
	if Shown(shown, now.Add(leafLife+time.Hour)) != nil || Shown(Bundle{CA: shown.CA}, now) != nil {
		t.Error("what has ended, or is damaged, counts as shown")
	}
}

// TestWhatIsKeptBesideAnAuthorityMayBeOfAnotherTime begins with a Secret of before that somebody has put back, or with
// one in which something is left that the operator took out.
func TestWhatIsKeptBesideAnAuthorityMayBeOfAnotherTime(t *testing.T) {
	old, by := bundleOf(t, "db"), bundleOf(t, "db")
	for what, k := range map[string]Kept{
		"the lost one is back":           {Bundle: old, Lost: old.Cert, Former: old.Cert},
		"they are not trusted any more":  {Bundle: by, Lost: old.Cert, Former: old.Cert},
		"the next one signs":             {Bundle: by, Next: by},
		"the next one is damaged":        {Bundle: by, Next: Bundle{Cert: old.Cert, Key: by.Key}},
		"the next one is no certificate": {Bundle: by, Next: Bundle{Cert: []byte("x"), Key: []byte("y")}},
	} {
		if is := k.Known(now); is.Changes() || !bytes.Equal(is.CA, k.CA) {
			t.Errorf("%s: %+v", what, is)
		}
	}
	if k := (Kept{Bundle: old, Next: by}).Known(now); !bytes.Contains(k.CA, by.Cert) || !k.Changes() {
		t.Error("a next one that somebody has put there is not trusted")
	}
}

// TestTheRootOfTheNextStays although it was that of the former one.
func TestTheRootOfTheNextStays(t *testing.T) {
	root := parsed(t, bundleOf(t, "root"))
	one := signedBy(t, root, nil, pkix.Name{CommonName: "one"}, root.cert.NotAfter)
	two := signedBy(t, root, nil, pkix.Name{CommonName: "two"}, root.cert.NotAfter)
	one.CA = joined(one.Cert, root.trust)
	k := Kept{Bundle: one, Next: Bundle{Cert: two.Cert, Key: two.Key}}.Known(now).Hand().Forget()
	if _, err := k.Parse(); err != nil || bytes.Contains(k.CA, one.Cert) {
		t.Errorf("%v, and it trusts %s", err, k.CA)
	}
}
