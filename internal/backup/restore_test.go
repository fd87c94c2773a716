package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/store"
)

func restore(t *testing.T, s store.Store, m *Manifest) (written map[string]string, err error) {
	t.Helper()
	root := directory(t)
	err = Restore(t.Context(), s, m, root, RestoreOptions{Server: "9.7.4"})
	return contents(t, root), err
}

// mayStart tells whether mysqld would start on what is written.
func mayStart(written map[string]string) bool {
	_, unfinished := written["#clone/#status_in_progress"]
	return len(written) > 0 && !unfinished
}

func TestAReadThatBreaksIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := taken(t)
		var mu sync.Mutex
		tried := map[string]int{}
		s.body = func(key string, body []byte) io.Reader {
			mu.Lock()
			defer mu.Unlock()
			if tried[key]++; tried[key] > 3 || !strings.Contains(key, "part-") {
				return bytes.NewReader(body)
			}
			half := bytes.NewReader(body[:len(body)/2])
			return io.MultiReader(half, iotest.ErrReader([]error{errStore, io.ErrUnexpectedEOF,
				errStore}[tried[key]-1]))
		}
		restorable(t, s, m)
	})
}

func TestAReadThatBreaksEachTimeEndsTheRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := taken(t)
		began := time.Now()
		s.body = func(_ string, body []byte) io.Reader {
			return io.MultiReader(bytes.NewReader(body[:len(body)/2]), iotest.ErrReader(errStore))
		}
		if written, err := restore(t, s, m); !errors.Is(err, errStore) || mayStart(written) ||
			time.Since(began) > time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// Each object, and each kind of damage.
func TestDamagedPartsAreNotApplied(t *testing.T) {
	_, m := taken(t)
	for i := range m.Parts {
		for name, spoil := range map[string]func([]byte) []byte{
			"a flipped bit":    func(b []byte) []byte { b = bytes.Clone(b); b[len(b)/2] ^= 4; return b },
			"a byte less":      func(b []byte) []byte { return b[:len(b)-1] },
			"nothing":          func([]byte) []byte { return []byte{} },
			"a byte more":      func(b []byte) []byte { return append(bytes.Clone(b), 0) },
			"many bytes more":  func(b []byte) []byte { return append(bytes.Clone(b), make([]byte, 9999)...) },
			"of another order": func(b []byte) []byte { b = bytes.Clone(b); slices.Reverse(b); return b },
		} {
			synctest.Test(t, func(t *testing.T) {
				s, m := taken(t)
				key := prefix(cluster, m.ID) + m.Parts[i].Name
				s.hidden[key] = true // so that the size does not tell
				s.objects[key] = spoil(s.objects[key])
				if written, err := restore(t, s, m); !errors.Is(err, PartDamaged) || mayStart(written) {
					t.Errorf("%s in part %d: %v", name, i, err)
				}
				s.hidden[key] = false
				if name == "a flipped bit" || name == "of another order" {
					return
				}
				if written, err := restore(t, s, m); !errors.Is(err, PartDamaged) || len(written) > 0 {
					t.Errorf("%s in part %d: %d files were written; %v", name, i, len(written), err)
				}
			})
		}
	}
}

func TestDamageOnTheWayIsFetchedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := taken(t)
		var mu sync.Mutex
		seen := map[string]bool{}
		s.body = func(key string, body []byte) io.Reader {
			mu.Lock()
			defer mu.Unlock()
			if !seen[key] {
				seen[key] = true
				body = bytes.Clone(body)
				body[9] ^= 1
			}
			return bytes.NewReader(body)
		}
		restorable(t, s, m)
	})
}

func TestAMissingPartIsToldBeforeAnythingIsWritten(t *testing.T) {
	_, m := taken(t)
	for i := range m.Parts {
		s, m := taken(t)
		delete(s.objects, prefix(cluster, m.ID)+m.Parts[i].Name)
		if written, err := restore(t, s, m); !errors.Is(err, PartMissing) || len(written) > 0 {
			t.Errorf("part %d: %d files were written; %v", i, len(written), err)
		}
	}
}

func TestAListingThatIsBehindHindersNothing(t *testing.T) {
	s, m := taken(t)
	for _, key := range s.keys("part-") {
		s.hidden[key] = true
	}
	restorable(t, s, m)
	s, m = taken(t)
	gone := prefix(cluster, m.ID) + m.Parts[3].Name
	s.get = func(_ context.Context, key string) error {
		if key == gone {
			return store.NotFound // the listing has it still
		}
		return nil
	}
	if written, err := restore(t, s, m); !errors.Is(err, PartMissing) || mayStart(written) {
		t.Errorf("%v", err)
	}
}

func TestAServerThatDoesNotFitIsRefused(t *testing.T) {
	s, m := taken(t)
	for server, why := range map[string]*Reason{"9.7.4": nil, "9.7.4-2": nil, "9.7.5": nil, "9.7.12": nil,
		"9.7.3": ServerOlder,
		"9.8.4": SeriesDiffers, "8.0.45": SeriesDiffers, "10.7.4": SeriesDiffers, "": VersionUnknown,
		"9.7": VersionUnknown} {
		root := directory(t)
		err := Restore(t.Context(), s, m, root, RestoreOptions{Server: server})
		if why == nil && err != nil || why != nil && (!errors.Is(err, why) || len(contents(t, root)) > 0) {
			t.Errorf("%q: %v", server, err)
		}
	}
}

func TestADirectoryThatIsNotEmptyIsLeftAlone(t *testing.T) {
	s, m := taken(t)
	root := directory(t)
	must(t, root.WriteFile("ibdata1", []byte("mine"), 0o600))
	err := Restore(t.Context(), s, m, root, RestoreOptions{Server: "9.7.4"})
	if !errors.Is(err, clone.NotEmpty) || len(contents(t, root)) != 1 {
		t.Errorf("%v", err)
	}
}

// synctest fails if a goroutine goes on.
func TestACancelledRestoreEnds(t *testing.T) {
	enough := errors.New("enough")
	for n := range 12 {
		synctest.Test(t, func(t *testing.T) {
			s, m := taken(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			var mu sync.Mutex
			gets := 0
			s.get = func(ctx context.Context, _ string) error {
				mu.Lock()
				if gets++; gets == n {
					cancel(enough)
				}
				mu.Unlock()
				return wait(ctx, time.Second)
			}
			if n == 0 {
				cancel(enough)
			}
			root := directory(t)
			err := Restore(ctx, s, m, root, RestoreOptions{Server: "9.7.4", Readers: 2})
			if n < len(m.Parts) &&
				(!errors.Is(err, enough) && !errors.Is(err, context.Canceled) || mayStart(contents(t, root))) {
				t.Errorf("cancelled at get %d of %d: %v", n, len(m.Parts), err)
			}
			cancel(nil)
		})
	}
}

func TestARestoreFetchesNoMorePartsAtATimeThanReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := taken(t)
		var mu sync.Mutex
		now, most := 0, 0
		s.get = func(ctx context.Context, _ string) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			defer func() { mu.Lock(); now--; mu.Unlock() }()
			return wait(ctx, time.Second)
		}
		must(t, Restore(t.Context(), s, m, directory(t), RestoreOptions{Server: "9.7.4", Readers: 3}))
		if most != 3 {
			t.Errorf("%d at a time", most)
		}
	})
}
