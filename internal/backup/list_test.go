package backup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cnmsql.co/internal/store"
)

// three are an older backup, a younger one, one that is damaged and one that has no end.
func three(t *testing.T) *memory {
	t.Helper()
	s := newMemory()
	for _, id := range []string{"b-older", "a-younger", "damaged"} {
		o := options()
		o.ID = id
		_, err := take(t.Context(), from(scene(1), nil), s, o)
		must(t, err)
		<-time.After(time.Millisecond)
	}
	s.objects[ManifestKey(cluster, "damaged")][40] ^= 1
	s.objects[prefix(cluster, "open")+nameOf("00000000", 1, false)] = []byte("half")
	for _, key := range []string{"shop/base/notes.txt", "shop/base/a-younger/README",
		"shop/base/what is this/manifest.json",
		"shop-2/base/x/manifest.json"} {
		s.objects[key] = []byte("not ours")
	}
	return s
}

func TestAListTellsWhatIsThere(t *testing.T) {
	s := three(t)
	all, err := List(t.Context(), s, cluster)
	must(t, err)
	var ids []string
	for _, e := range all {
		ids = append(ids, e.ID)
		want := map[string]*Reason{"damaged": ManifestDamaged, "open": BackupUnfinished}[e.ID]
		if want == nil && (e.Err != nil || e.RawSize == 0 || e.Size < e.StoredSize || e.Objects < 3) ||
			want != nil && !errors.Is(e.Err, want) {
			t.Errorf("%s: %v, %+v", e.ID, e.Err, e)
		}
	}
	if !slices.Equal(ids, []string{"a-younger", "b-older", "damaged", "open"}) {
		t.Errorf("%q", ids)
	}
}

func TestAManifestIsFoundThoughTheListingIsBehind(t *testing.T) {
	s, _ := taken(t)
	for _, key := range s.keys("") {
		s.hidden[key] = true
	}
	_, err := Read(t.Context(), s, cluster, "monday")
	must(t, err)
	if all, err := List(t.Context(), s, cluster); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
	for _, key := range s.keys("part-") {
		s.hidden[key] = false
	}
	if all, err := List(t.Context(), s, cluster); err != nil || len(all) != 1 || all[0].Err != nil {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := Read(t.Context(), s, cluster, "tuesday"); !errors.Is(err, BackupUnknown) {
		t.Errorf("%v", err)
	}
}

// TestAListedManifestThatIsNotFoundIsNotGone checks that the store is asked again, and what it says then counts.
func TestAListedManifestThatIsNotFoundIsNotGone(t *testing.T) {
	for name, c := range map[string]struct {
		times   int
		removed bool
		want    error
	}{
		"for a moment":         {times: 2},
		"for long":             {times: 1000, want: ErrManifestAbsent},
		"as somebody took it":  {times: 1, removed: true, want: BackupUnfinished},
		"and not listed later": {times: 3, removed: true, want: BackupUnfinished},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := taken(t)
				key, times := ManifestKey(cluster, m.ID), c.times
				s.get = func(_ context.Context, asked string) error {
					if asked != key || times == 0 {
						return nil
					}
					if times--; c.removed && times == 0 {
						delete(s.objects, key)
					}
					return store.NotFound
				}
				all, err := List(t.Context(), s, cluster)
				must(t, err)
				e := all[0]
				if len(all) != 1 || !e.Listed || !errors.Is(e.Err, c.want) || c.want == nil && e.RawSize == 0 ||
					errors.Is(e.Err, BackupUnknown) {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}

func TestAManifestInAnotherPlaceIsRefused(t *testing.T) {
	s, _ := taken(t)
	s.objects[ManifestKey(cluster, "copy")] = s.objects[ManifestKey(cluster, "monday")]
	if _, err := Read(t.Context(), s, cluster, "copy"); !errors.Is(err, ManifestDamaged) {
		t.Errorf("%v", err)
	}
}

func TestWhatIsRemovedIsGoneAndNothingElse(t *testing.T) {
	for _, id := range []string{"a-younger", "damaged", "open", "never"} {
		s := three(t)
		for _, key := range s.keys("a-younger/part-") {
			s.hidden[key] = true // the manifest names them
		}
		others := len(s.keys("")) - len(s.keys("/"+id+"/part-")) - len(s.keys("/"+id+"/manifest.json"))
		must(t, Remove(t.Context(), s, cluster, id))
		if left := s.keys(""); len(left) != others {
			t.Errorf("%s is removed, and %d are left, not %d: %q", id, len(left), others, left)
		}
		must(t, Remove(t.Context(), s, cluster, id))
	}
	for _, id := range []string{"", "..", "a/b", "."} {
		if err := Remove(t.Context(), newMemory(), cluster, id); err == nil {
			t.Errorf("%q is removed", id)
		}
	}
}

// TestNothingThatHasAManifestIsRemovedAsUnfinished checks it for each way in which a manifest shows.
func TestNothingThatHasAManifestIsRemovedAsUnfinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := three(t)
		whole, key := len(s.keys("")), ManifestKey(cluster, "a-younger")
		for name, c := range map[string]struct {
			id       string
			isHidden bool
			read     error
		}{
			"it is found":             {id: "a-younger"},
			"it is found, not listed": {id: "a-younger", isHidden: true},
			"it is listed, not found": {id: "a-younger", read: store.NotFound},
			"it cannot be read":       {id: "a-younger", isHidden: true, read: errStore},
			"it is damaged":           {id: "damaged"},
			"it has no name":          {id: ""},
		} {
			s.hidden[key] = c.isHidden
			s.get = func(context.Context, string) error { return c.read }
			if err := RemoveUnfinished(t.Context(), s, cluster, c.id); err == nil || len(s.keys("")) != whole {
				t.Errorf("%s: %v, and of %d objects %d are left", name, err, whole, len(s.keys("")))
			}
		}
		s.get = nil
		must(t, RemoveUnfinished(t.Context(), s, cluster, "open"))
		if left := s.keys("/open/"); len(left) > 0 || len(s.keys("")) != whole-1 {
			t.Errorf("%q are left, of %d objects %d", left, whole, len(s.keys("")))
		}
		must(t, RemoveUnfinished(t.Context(), s, cluster, "open"))
	})
}

func TestARemovalThatIsInterruptedLeavesNoBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := taken(t)
		s.remove = func(_ context.Context, key string) error {
			if strings.HasSuffix(key, m.Parts[2].Name) {
				return errStore
			}
			return nil
		}
		if err := Remove(t.Context(), s, cluster, m.ID); !errors.Is(err, errStore) {
			t.Errorf("%v", err)
		}
		if _, err := Read(t.Context(), s, cluster, m.ID); !errors.Is(err, BackupUnknown) {
			t.Errorf("%v", err)
		}
		s.remove = nil
		must(t, Remove(t.Context(), s, cluster, m.ID))
		if left := s.keys(dirBase); len(left) > 0 {
			t.Errorf("%q are left", left)
		}
	})
}

// TestManyPartsAreRemovedAtATime, once the manifest is gone: one after the other they would take hours.
func TestManyPartsAreRemovedAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory()
		m, err := take(t.Context(), from(scene(100), nil), s, options())
		must(t, err)
		var going atomic.Int32
		goOn, done := make(chan struct{}), make(chan error)
		s.remove = func(_ context.Context, key string) error {
			if strings.Contains(key, "part-") {
				going.Add(1)
				<-goOn
			}
			return nil
		}
		go func() { done <- Remove(t.Context(), s, cluster, m.ID) }()
		synctest.Wait()
		if n := going.Load(); n != 16 || len(s.keys(fileManifest)) > 0 {
			t.Errorf("%d of %d parts are being removed, and of manifests there are %q", n, len(m.Parts),
				s.keys(fileManifest))
		}
		close(goOn)
		must(t, <-done)
		if left := s.keys(dirBase); len(left) > 0 {
			t.Errorf("%q are left", left)
		}
	})
}

func TestWhatGivenUpAttemptsLeftOfABackupIsSwept(t *testing.T) {
	s, m := taken(t)
	whole := s.keys("")
	dir := prefix(cluster, m.ID)
	for _, left := range []string{dir + nameOf("00000001", 0, false), dir + nameOf("00000001", 1, true),
		dir + "notes-of-a-human", prefix(cluster, "tuesday") + nameOf("00000001", 0, false)} {
		s.objects[left] = []byte("x")
	}
	swept, err := Sweep(t.Context(), s, m)
	must(t, err)
	if left := s.keys(""); swept != 2 || len(left) != len(whole)+2 {
		t.Errorf("%d are swept, and left are %q", swept, left)
	}
	must(t, Check(t.Context(), s, m))
}

func TestNobodyOwnsAnEmptyArchive(t *testing.T) {
	if _, err := Owner(t.Context(), newMemory(), cluster); !errors.Is(err, store.NotFound) {
		t.Errorf("%v", err)
	}
	s, _ := taken(t)
	if owner, err := Owner(t.Context(), s, cluster); err != nil || owner.UID != "u-1" {
		t.Errorf("%+v, %v", owner, err)
	}
}
