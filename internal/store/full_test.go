package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// fill writes objects of a size until the store takes none more, and returns the keys of those that it took
// and of the one that it did not.
func fill(t *testing.T, name string, size int, write func(ctx context.Context, key string, body []byte) error,
) (taken []string, refused string) {
	t.Helper()
	for n := range 10000 {
		key := fmt.Sprintf("%s/%d", name, n)
		err := write(t.Context(), key, contentOf(key, size))
		if err != nil {
			mustFail(t, err, store.Full)
			return taken, key
		}
		taken = append(taken, key)
	}
	t.Fatal("it is never full")
	return nil, ""
}

func contentOf(key string, size int) []byte {
	return []byte(strings.Repeat(key+"|", size/(len(key)+1)+1)[:size])
}

// TestAFullStoreSaysSo also where no more is left than is needed for an object and not for what is kept of it
// beside. It has whole objects only, and takes others once there is room.
func TestAFullStoreSaysSo(t *testing.T) {
	s, err := store.OpenImpatiently(storetest.SmallS3(t, "8m"), 10*time.Second, 100*time.Millisecond)
	must(t, err)
	sizes := map[string]int{}
	var refused []string
	for i, size := range []int{1 << 20, 300 << 10, 20 << 10, 5000, 3000, 1} {
		for n, write := range []func(context.Context, string, []byte) error{s.Put, s.Create} {
			taken, no := fill(t, fmt.Sprintf("%d-%d", i, n), size, write)
			refused = append(refused, no)
			for _, key := range taken {
				sizes[key] = size
			}
		}
	}
	isWhole(t, s, sizes)
	for key, size := range sizes {
		if size == 1<<20 {
			must(t, s.Delete(t.Context(), key))
			delete(sizes, key)
			break
		}
	}
	for _, key := range refused {
		if _, err := s.Get(t.Context(), key); !errors.Is(err, store.NotFound) {
			t.Errorf("%s was refused, and reading it says %v", key, err)
		}
		must(t, s.Create(t.Context(), key, contentOf(key, 7)))
		sizes[key] = 7
	}
	isWhole(t, s, sizes)
}

// isWhole holds what a store has to what was written.
func isWhole(t *testing.T, s store.Store, sizes map[string]int) {
	t.Helper()
	listed := map[string]int{}
	for o, err := range s.List(t.Context(), "") {
		must(t, err)
		listed[o.Key] = int(o.Size)
	}
	for key := range listed {
		if _, written := sizes[key]; !written {
			t.Errorf("%s is listed with %d bytes, and was not written", key, listed[key])
		}
	}
	for key, size := range sizes {
		body, err := s.Get(t.Context(), key)
		must(t, err)
		text, err := io.ReadAll(body)
		if err != nil || string(text) != string(contentOf(key, size)) || listed[key] != size {
			t.Errorf("%s has %d bytes and is listed with %d: %v", key, len(text), listed[key], err)
		}
		must(t, body.Close())
	}
}

func TestAStoreThatDeniesSaysSo(t *testing.T) {
	dir := storetest.S3(t)
	s, err := store.Open(dir)
	must(t, err)
	must(t, s.Put(t.Context(), "key", []byte("body")))
	allow := storetest.Deny(t, dir)
	for method, err := range everything(t.Context(), s) {
		if !errors.Is(err, store.AccessDenied) {
			t.Errorf("%s: %v", method, err)
		}
	}
	allow()
	must(t, s.Put(t.Context(), "key", []byte("other")))
	must(t, s.Delete(t.Context(), "key"))
}
