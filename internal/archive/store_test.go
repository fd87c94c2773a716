package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// memory is a store that does what its hooks say.
type memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	at      map[string]time.Time // when they were written
	writes  int
	// before a write: an error, or a long wait.
	before func(ctx context.Context, key string) error
	// after a write that was done: an answer that does not come.
	after func(key string) error
	// key opens what is encrypted.
	key seal.Key
	// hidden objects are not listed, and absent ones not found.
	hidden, absent func(key string) bool
}

func place(m *memory) Place { return NewPlace(m, prefix, m.key) }

func newMemory() *memory { return &memory{objects: map[string][]byte{}, at: map[string]time.Time{}} }

// written is how many objects were.
func (m *memory) written() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes
}

func (m *memory) write(ctx context.Context, key string, body []byte, replace bool) error {
	if m.before != nil {
		if err := m.before(ctx, key); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, is := m.objects[key]; is && !replace {
		return store.Exists
	}
	m.objects[key], m.at[key] = bytes.Clone(body), time.Now()
	m.writes++
	if m.after != nil {
		return m.after(key)
	}
	return nil
}

func (m *memory) Put(ctx context.Context, key string, body []byte) error {
	return m.write(ctx, key, body, true)
}

func (m *memory) Create(ctx context.Context, key string, body []byte) error {
	return m.write(ctx, key, body, false)
}

func (m *memory) Get(_ context.Context, key string) (io.ReadCloser, error) {
	if m.absent != nil && m.absent(key) {
		return nil, store.NotFound
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	body, is := m.objects[key]
	if !is {
		return nil, store.NotFound
	}
	return io.NopCloser(bytes.NewReader(body)), nil
}

func (m *memory) keys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.objects))
}

func (m *memory) object(key string) store.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	return store.Object{Key: key, Size: int64(len(m.objects[key])), Modified: m.at[key]}
}

func (m *memory) List(_ context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for _, key := range m.keys() {
			if !strings.HasPrefix(key, prefix) || m.hidden != nil && m.hidden(key) {
				continue
			}
			if !yield(m.object(key), nil) {
				return
			}
		}
	}
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return nil
}

var errFault = errors.New("the store is on fire")
