package archive

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	facts "cnmsql.co/internal/core/archive"
)

// TestWhatIsDamagedHidesNothingElse: a head that was cut or changed, and a branch.
func TestWhatIsDamagedHidesNothingElse(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		shipped(t, l, m, 4)
		whole := loaded(t, m)
		keep := map[string][]byte{}
		for key, object := range m.objects {
			keep[key] = object
		}
		epoch := whole.Parts[0].Epoch
		part, branch := facts.Key{Epoch: epoch, Sequence: 2}, facts.Key{Epoch: epoch}
		last := facts.Key{Epoch: epoch, Sequence: int64(len(whole.Parts))}
		for name, c := range map[string]struct {
			key    facts.Key
			object string
			body   []byte
		}{
			"a head that is cut":   {part, partKey(prefix, part), keep[partKey(prefix, part)][:20]},
			"nothing in it":        {part, partKey(prefix, part), nil},
			"something else":       {last, partKey(prefix, last), []byte("<html>the bucket's new owner</html>")},
			"a branch that is cut": {branch, branchKey(prefix, epoch), keep[branchKey(prefix, epoch)][:20]},
		} {
			for key, object := range keep {
				m.objects[key] = object
			}
			m.objects[c.object] = c.body
			a := loaded(t, m)
			if len(a.Unreadable) != 1 || a.Unreadable[0].Key != c.key ||
				a.Unreadable[0].Reason != facts.PartDamaged {
				t.Errorf("%s: %+v", name, a.Unreadable)
			}
			if n := len(a.Parts) + len(a.Branches) + 1; n != len(whole.Parts)+len(whole.Branches) {
				t.Errorf("%s: %d objects are known", name, n)
			}
		}
	})
}

// TestWhatIsListedLastIsNotTakenForNone checks that nobody is given an archive without its end, or without a
// branch, and not told so: the store is asked again for what it lists, and then that is named.
func TestWhatIsListedLastIsNotTakenForNone(t *testing.T) {
	at := func(n int64) facts.Key { return facts.Key{Epoch: 1, Sequence: n} }
	bundle, last := bundleKey(prefix, facts.Bundle{Epoch: 1, First: 1, Last: 19}), partKey(prefix, at(20))
	for name, c := range map[string]struct {
		key            facts.Key
		object, hidden string
	}{
		"the last part":                {key: at(20), object: last},
		"the branch":                   {key: at(0), object: branchKey(prefix, 1)},
		"a bundle with the last parts": {key: at(19), object: bundle, hidden: last},
	} {
		story(name, t, func(t *testing.T, l *logs, m *memory) {
			indexing(t, l, m, 20)
			merged(t, m)
			merged(t, m)
			whole := loaded(t, m)
			m.hidden = func(key string) bool { return key == c.hidden }
			if a := loaded(t, &blinking{m, c.object, asks - 1}); !reflect.DeepEqual(a, whole) {
				t.Errorf("of %d parts and %d branches %d and %d are found", len(whole.Parts), len(whole.Branches),
					len(a.Parts), len(a.Branches))
			}
			a, err := Load(t.Context(), &blinking{m, c.object, 1000}, prefix)
			must(t, err)
			if len(a.Unreadable) != 1 || a.Unreadable[0].Key != c.key || !strings.Contains(a.Unreadable[0].Message,
				c.object) {
				t.Errorf("what cannot be read is %+v", a.Unreadable)
			}
			_, err = place(m).Choose(t.Context(), &a, facts.Base{}, facts.Target{})
			if no, is := errors.AsType[*facts.Refusal](err); !is || no.Reason != facts.ListedAbsent {
				t.Errorf("of a restore to the latest it says %v", err)
			}
			early := facts.Target{Kind: facts.ToGTIDs, GTIDs: ids(1, "2")}
			if _, err = place(m).Choose(t.Context(), &a, facts.Base{}, early); c.key == at(20) && err != nil {
				t.Errorf("of a restore that does not need it it says %v", err)
			}
		})
	}
}

// TestWhatGoesWhileItIsReadIsLeftOut checks that a part which is not the last may be missing.
func TestWhatGoesWhileItIsReadIsLeftOut(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		shipped(t, l, m, 4)
		whole := loaded(t, m)
		for n, p := range whole.Parts[:len(whole.Parts)-1] {
			a, err := Load(t.Context(), &blinking{m, partKey(prefix, p.Key()), 1000}, prefix)
			if a = expanded(t, m, a); err != nil || len(a.Parts) != len(whole.Parts)-1 || len(a.Unreadable) > 0 {
				t.Errorf("without the %dth part %d are found, and it says %v", n, len(a.Parts), err)
			}
		}
	})
}

// TestWhoAsksForBranchesIsToldOfOneThatIsNotFound checks it of one that is listed.
func TestWhoAsksForBranchesIsToldOfOneThatIsNotFound(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		shipped(t, l, m, 4)
		object := branchKey(prefix, 1)
		all, err := Branches(t.Context(), &blinking{m, object, 1}, prefix)
		if !errors.Is(err, facts.ErrListedAbsent) || !strings.Contains(err.Error(), object) {
			t.Errorf("%+v, and it says %v", all, err)
		}
		delete(m.objects, object)
		if all, err := Branches(t.Context(), m, prefix); err != nil || len(all) > 0 {
			t.Errorf("of an archive without one %+v, and it says %v", all, err)
		}
	})
}
