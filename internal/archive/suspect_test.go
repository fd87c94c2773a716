package archive

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/seal"
)

// Whoever is told to end while it reads a part knows nothing of that.
func TestAPartThatIsReadNoMoreIsNotDamaged(t *testing.T) {
	_, each := newKey(t, 1)
	compress, err := newCompressor()
	must(t, err)
	raw := make([]byte, 1<<20)
	_, _ = rand.Read(raw)
	for what, key := range map[string]seal.Key{"plain": {}, "encrypted": each[0]} {
		part := facts.Part{Epoch: 1, Sequence: 1}
		object, err := compress.object(&part, raw, key)
		must(t, err)
		for _, why := range []error{context.Canceled, context.DeadlineExceeded} {
			broken := iotest.ErrReader(fmt.Errorf("reading: %w", why))
			body := io.MultiReader(bytes.NewReader(object[:len(object)/2]), broken)
			in, err := openObject(io.NopCloser(body), part, key)
			must(t, err)
			if _, err = io.Copy(io.Discard, in); !errors.Is(err, why) || errors.Is(err, PartDamaged) {
				t.Errorf("%s: %v", what, err)
			}
			must(t, in.Close())
		}
	}
}

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
