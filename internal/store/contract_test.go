package store_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// contract is what Store promises, and what every store keeps.
var contract = []struct {
	name string
	test func(*testing.T, store.Store)
}{
	{"GivesBackWhatWasPut", givesBackWhatWasPut},
	{"PutReplaces", putReplaces},
	{"CreateDoesNotReplace", createDoesNotReplace},
	{"OneOfManyCreatesWins", oneOfManyCreatesWins},
	{"ListsInTheOrderOfKeys", listsInTheOrderOfKeys},
	{"ListsManyAndStopsWhenTold", listsManyAndStopsWhenTold},
	{"DeletesOnceAndAgain", deletesOnceAndAgain},
	{"RefusesKeysThatEscape", refusesKeysThatEscape},
	{"EndsWithItsContext", endsWithItsContext},
}

func TestDirectoryKeepsTheContract(t *testing.T) { keepsTheContract(t, storetest.Dir) }

func TestS3KeepsTheContract(t *testing.T) { keepsTheContract(t, storetest.S3) }

func TestGoogleKeepsTheContract(t *testing.T) { keepsTheContract(t, storetest.GCS) }

func TestAzureKeepsTheContract(t *testing.T) {
	at := storetest.Azurite(t)
	heldTo(t, at.ByKey(t), len(contract))
	for name, dir := range map[string]string{"SAS": at.BySAS(t, time.Now().Add(time.Hour)),
		"ConnectionString": at.ByConnectionString(t), "Identity": at.ByIdentity(t)} {
		t.Run(name, func(t *testing.T) { heldTo(t, dir, 5) })
	}
}

func TestLimitedKeepsTheContract(t *testing.T) {
	t.Parallel()
	for _, c := range contract[:4] { // it lists and deletes as the store within
		t.Run(c.name, func(t *testing.T) { c.test(t, store.Limited(open(t, storetest.Dir(t)), 1<<30)) })
	}
}

func keepsTheContract(t *testing.T, start func(testing.TB) string) {
	t.Parallel()
	heldTo(t, start(t), len(contract))
}

// heldTo holds a store to the beginning of the contract.
func heldTo(t *testing.T, dir string, most int) {
	t.Helper()
	for _, c := range contract[:most] {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, dir)
			for _, o := range list(t, s, "") {
				must(t, s.Delete(t.Context(), o.Key))
			}
			c.test(t, s)
		})
	}
}

func open(t *testing.T, dir string) store.Store {
	t.Helper()
	s, err := store.Open(dir)
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustFail(t *testing.T, err, why error) {
	t.Helper()
	if !errors.Is(err, why) {
		t.Fatalf("%v, wanted %v", err, why)
	}
}

func get(t *testing.T, s store.Store, key string) []byte {
	t.Helper()
	r, err := s.Get(t.Context(), key)
	must(t, err)
	body, err := io.ReadAll(r)
	must(t, errors.Join(err, r.Close()))
	return body
}

func list(t *testing.T, s store.Store, prefix string) (all []store.Object) {
	t.Helper()
	for o, err := range s.List(t.Context(), prefix) {
		must(t, err)
		all = append(all, o)
	}
	return all
}

func keys(t *testing.T, s store.Store, prefix string) (all []string) {
	t.Helper()
	for _, o := range list(t, s, prefix) {
		all = append(all, o.Key)
	}
	return all
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("wanted -, got +:\n%s", diff)
	}
}

func givesBackWhatWasPut(t *testing.T, s store.Store) {
	big := make([]byte, 8<<20)
	_, _ = rand.Read(big)
	for key, body := range map[string][]byte{"empty": {}, "a/b/c": []byte("small"), "big": big,
		"odd/ +%&=?#\"'~ä": []byte("odd")} {
		must(t, s.Put(t.Context(), key, body))
		if !bytes.Equal(get(t, s, key), body) {
			t.Errorf("%s: something else", key)
		}
	}
	_, err := s.Get(t.Context(), "nothing")
	mustFail(t, err, store.NotFound)
	_, err = s.Get(t.Context(), "a/b")
	mustFail(t, err, store.NotFound)
	_, err = s.Get(t.Context(), "empty/below")
	mustFail(t, err, store.NotFound)
}

func putReplaces(t *testing.T, s store.Store) {
	must(t, s.Put(t.Context(), "k", []byte("long, and first")))
	must(t, s.Put(t.Context(), "k", []byte("second")))
	same(t, string(get(t, s, "k")), "second")
}

func createDoesNotReplace(t *testing.T, s store.Store) {
	must(t, s.Create(t.Context(), "k", []byte("first")))
	mustFail(t, s.Create(t.Context(), "k", []byte("second")), store.Exists)
	mustFail(t, s.Create(t.Context(), "k", []byte("first")), store.Exists)
	same(t, string(get(t, s, "k")), "first")
	must(t, s.Delete(t.Context(), "k"))
	must(t, s.Create(t.Context(), "k", []byte("second")))
	same(t, string(get(t, s, "k")), "second")
}

func oneOfManyCreatesWins(t *testing.T, s store.Store) {
	must(t, s.Create(t.Context(), "other", nil)) // the first Create is a special one
	var all sync.WaitGroup
	var won atomic.Pointer[string]
	for i := range 8 {
		all.Go(func() {
			body := fmt.Sprint(i)
			err := s.Create(t.Context(), "dir/k", []byte(body))
			if err == nil && !won.CompareAndSwap(nil, &body) {
				t.Error("two won")
			}
			if err != nil && !errors.Is(err, store.Exists) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() == nil {
		t.Fatal("nobody won")
	}
	same(t, string(get(t, s, "dir/k")), *won.Load())
}

func listsInTheOrderOfKeys(t *testing.T, s store.Store) {
	begun := time.Now()
	for _, key := range []string{"b/2", "a.b", "a/b", "a/c/d", "a-b", "ab", "b/10"} {
		must(t, s.Put(t.Context(), key, []byte(key)))
	}
	same(t, keys(t, s, ""), []string{"a-b", "a.b", "a/b", "a/c/d", "ab", "b/10", "b/2"})
	same(t, keys(t, s, "a/"), []string{"a/b", "a/c/d"})
	same(t, keys(t, s, "a/c"), []string{"a/c/d"})
	same(t, keys(t, s, "b/1"), []string{"b/10"})
	same(t, keys(t, s, "nothing/here"), []string(nil))
	for _, o := range list(t, s, "b/10") {
		same(t, o.Size, int64(4))
		if off := o.Modified.Sub(begun).Abs(); off > time.Minute {
			t.Errorf("modified at %s, which is %s off", o.Modified, off)
		}
	}
}

func listsManyAndStopsWhenTold(t *testing.T, s store.Store) {
	var want []string
	var all sync.WaitGroup
	room := make(chan struct{}, 8)
	for i := range 1100 { // S3 lists 1000 at once
		key := fmt.Sprintf("many/%04d", i)
		want = append(want, key)
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			if err := s.Put(t.Context(), key, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	same(t, keys(t, s, "many/"), want)
	n := 0
	for _, err := range s.List(t.Context(), "") {
		must(t, err)
		if n++; n == 3 {
			break
		}
	}
	same(t, n, 3)
}

func deletesOnceAndAgain(t *testing.T, s store.Store) {
	must(t, s.Put(t.Context(), "a/b", nil))
	must(t, s.Put(t.Context(), "a/c", nil))
	must(t, s.Delete(t.Context(), "a/b"))
	must(t, s.Delete(t.Context(), "a/b"))
	must(t, s.Delete(t.Context(), "never/was"))
	same(t, keys(t, s, ""), []string{"a/c"})
	must(t, s.Delete(t.Context(), "a/c"))
	must(t, s.Put(t.Context(), "a", nil)) // which was a directory
	same(t, keys(t, s, ""), []string{"a"})
}

func refusesKeysThatEscape(t *testing.T, s store.Store) {
	for _, key := range []string{"", "/", "/a", "a/", "a//b", "..", "../a", "a/../b", ".", "a/./b", "a\x00b",
		"a\\b", "a\nb", "\xff",
		".cnmsql-store-tmp/a", "a/.cnmsql-store-x", strings.Repeat("a", 256), strings.Repeat("a/", 450) + "a"} {
		mustFail(t, s.Put(t.Context(), key, nil), store.BadKey)
		mustFail(t, s.Create(t.Context(), key, nil), store.BadKey)
		mustFail(t, s.Delete(t.Context(), key), store.BadKey)
		_, err := s.Get(t.Context(), key)
		mustFail(t, err, store.BadKey)
	}
	long := strings.Repeat(strings.Repeat("k", 179)+"/", 4) + strings.Repeat("k", 180)
	must(t, s.Put(t.Context(), long, []byte("long")))
	same(t, keys(t, s, ""), []string{long})
}

func endsWithItsContext(t *testing.T, s store.Store) {
	must(t, s.Put(t.Context(), "k", []byte("body")))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := s.Get(ctx, "k")
	must(t, err)
	cancel()
	mustFail(t, s.Put(ctx, "k", nil), context.Canceled)
	mustFail(t, s.Create(ctx, "k2", nil), context.Canceled)
	mustFail(t, s.Delete(ctx, "k"), context.Canceled)
	_, err = io.ReadAll(r)
	mustFail(t, errors.Join(err, r.Close()), context.Canceled)
	for _, err = range s.List(ctx, "") {
	}
	mustFail(t, err, context.Canceled)
}
