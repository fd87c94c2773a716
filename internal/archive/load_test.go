package archive

import (
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
