package backup

import (
	"bytes"
	"context"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"cnmsql.co/internal/store"
)

// memory is a store.Store that does what a test asks for before it does its work.
type memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	hidden  map[string]bool // what listings do not tell
	// put, get and remove are asked first; put of Create, too.
	put, get, remove func(ctx context.Context, key string) error
	// body is what is read of an object.
	body func(key string, body []byte) io.Reader
	// puts counts, and now and most are how many are under way, with their bytes.
	puts               int
	now, most          int
	nowBytes, mostBody int
}

func newMemory() *memory {
	return &memory{objects: map[string][]byte{}, hidden: map[string]bool{}}
}

func (m *memory) begin(ctx context.Context, key string, body []byte) error {
	m.mu.Lock()
	m.puts++
	m.now++
	m.nowBytes += len(body)
	m.most, m.mostBody = max(m.most, m.now), max(m.mostBody, m.nowBytes)
	m.mu.Unlock()
	var err error
	if m.put != nil {
		err = m.put(ctx, key)
	}
	m.mu.Lock()
	m.now--
	m.nowBytes -= len(body)
	m.mu.Unlock()
	if err == nil {
		err = ctx.Err()
	}
	return err
}

func (m *memory) Put(ctx context.Context, key string, body []byte) error {
	err := m.begin(ctx, key, body)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[key] = bytes.Clone(body)
	return nil
}

func (m *memory) Create(ctx context.Context, key string, body []byte) error {
	if err := m.begin(ctx, key, body); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects[key] != nil {
		return store.Exists
	}
	m.objects[key] = bytes.Clone(body)
	return nil
}

func (m *memory) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if m.get != nil {
		if err := m.get(ctx, key); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	body := m.objects[key]
	if body == nil {
		return nil, store.NotFound
	}
	if m.body != nil {
		return io.NopCloser(m.body(key, body)), nil
	}
	return io.NopCloser(bytes.NewReader(body)), ctx.Err()
}

func (m *memory) List(_ context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(m.objects)) {
			if strings.HasPrefix(key, prefix) && !m.hidden[key] &&
				!yield(store.Object{Key: key, Size: int64(len(m.objects[key])), Modified: time.Unix(1, 0)}, nil) {
				return
			}
		}
	}
}

func (m *memory) Delete(ctx context.Context, key string) error {
	if m.remove != nil {
		if err := m.remove(ctx, key); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return ctx.Err()
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
