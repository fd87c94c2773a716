package archive

import (
	"testing"

	facts "cnmsql.co/internal/core/archive"
)

// TestAPartThatWasDamagedIsReadAgain checks that it is taken out of what can be replayed as long as it is damaged, and
// no other one is, whether it lies by itself or among others that are known as one.
func TestAPartThatWasDamagedIsReadAgain(t *testing.T) {
	key := facts.Key{Epoch: 1, Sequence: 21}
	for name, merge := range map[string]bool{"an object of its own": false, "one in a bundle": true} {
		story(name, t, func(t *testing.T, l *logs, m *memory) {
			indexing(t, l, m, 60)
			object, at := partKey(prefix, key), -1
			if merge {
				merged(t, m)
				merged(t, m)
				object = ""
				for stored := range m.objects {
					if b, is := readBundleKey(prefix, stored); is && b.First <= key.Sequence && key.Sequence <= b.Last {
						object = stored
					}
				}
			}
			sound := loaded(t, m)
			must(t, place(m).Suspect(t.Context(), &sound, []facts.Key{key, {Epoch: 7, Sequence: 1}}))
			if len(sound.Unreadable) > 0 {
				t.Errorf("it is sound, and %+v", sound.Unreadable)
			}
			if merge {
				at = len(m.objects[object]) / 2
			}
			flip(m, object, at)
			for sequence := int64(1); merge && sequence <= 60; sequence++ { // which of them is damaged
				a := loaded(t, m)
				part, err := place(m).find(t.Context(), &a, facts.Key{Epoch: 1, Sequence: sequence})
				must(t, err)
				if part != nil && place(m).drain(t.Context(), *part) != nil {
					key.Sequence = sequence
				}
			}
			a := loaded(t, m)
			before := partsOf(a)
			must(t, place(m).Suspect(t.Context(), &a, []facts.Key{key}))
			if len(a.Unreadable) != 1 || a.Unreadable[0].Key != key || a.Unreadable[0].Reason != facts.PartDamaged {
				t.Errorf("it tells %+v", a.Unreadable)
			}
			if now := partsOf(a); now != before-1 {
				t.Errorf("%d parts are left of %d", now, before)
			}
		})
	}
}

// partsOf is how many parts are known, those of runs included.
func partsOf(a facts.Archive) (n int64) {
	for _, p := range a.Parts {
		n += p.Span().Count()
	}
	return n
}
