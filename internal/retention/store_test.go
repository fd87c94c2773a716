package retention

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

	"cnmsql.co/internal/store"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var errFault = errors.New("the store is on fire")

// memory is a store of which a test sets the times, and says what fails.
type memory struct {
	mu       sync.Mutex
	objects  map[string][]byte
	modified map[string]time.Time
	hidden   map[string]bool // what listings do not tell
	// deletes are the keys that were deleted, in order; of which the failAt-th fails, if it
	// is not 0.
	deletes []string
	failAt  int
	// unreadable is an object that cannot be read now, and absent one that is listed and not found.
	unreadable, absent string
	// onRead is told of an object before it is read.
	onRead func(key string)
}

func (m *memory) Put(_ context.Context, key string, body []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[key] = bytes.Clone(body)
	return nil
}

func (m *memory) Create(ctx context.Context, key string, body []byte) error {
	if m.objects[key] != nil {
		return store.Exists
	}
	return m.Put(ctx, key, body)
}

func (m *memory) Get(_ context.Context, key string) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.onRead != nil {
		m.onRead(key)
	}
	if key == m.unreadable {
		return nil, store.AccessDenied
	}
	if m.objects[key] == nil || key == m.absent {
		return nil, store.NotFound
	}
	return io.NopCloser(bytes.NewReader(m.objects[key])), nil
}

func (m *memory) List(_ context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for _, key := range m.keys("") {
			if strings.HasPrefix(key, prefix) && !m.hidden[key] && !yield(m.object(key), nil) {
				return
			}
		}
	}
}

// object is what a listing tells of one.
func (m *memory) object(key string) store.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	return store.Object{Key: key, Size: int64(len(m.objects[key])), Modified: m.modified[key]}
}

func (m *memory) Delete(ctx context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	m.deletes = append(m.deletes, key)
	if m.failAt > 0 && len(m.deletes) >= m.failAt {
		return errFault
	}
	delete(m.objects, key)
	return nil
}

// keys are those that contain a text.
func (m *memory) keys(text string) (keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(m.objects)) {
		if strings.Contains(key, text) {
			keys = append(keys, key)
		}
	}
	return keys
}
