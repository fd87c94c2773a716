package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// refusing calls back when the store refuses an object for a reason for the first time.
type refusing struct {
	store.Store
	why  *store.Reason
	call func()
	once sync.Once
}

func (r *refusing) Put(ctx context.Context, key string, body []byte) error {
	err := r.Store.Put(ctx, key, body)
	r.saw(err)
	return err
}

func (r *refusing) Create(ctx context.Context, key string, body []byte) error {
	err := r.Store.Create(ctx, key, body)
	r.saw(err)
	return err
}

func (r *refusing) saw(err error) {
	if errors.Is(err, r.why) {
		r.once.Do(r.call)
	}
}

// TestAnS3StoreThatIsFullForAMomentIsWaitedFor while a backup is taken, which is whole then. None is begun that
// would find it full.
func TestAnS3StoreThatIsFullForAMomentIsWaitedFor(t *testing.T) {
	inner, err := store.Open(storetest.SmallS3(t, "4m"))
	must(t, err)
	n := 0
	fill := func() {
		for ; err == nil; n++ {
			err = inner.Put(t.Context(), fmt.Sprintf("filler/%d", n), make([]byte, 32<<10))
		}
	}
	free := func() {
		for ; n > 0; n-- {
			must(t, inner.Delete(t.Context(), fmt.Sprintf("filler/%d", n-1)))
		}
	}
	fill()
	if _, err := take(t.Context(), from(scene(4), nil), inner, options()); !errors.Is(err, store.Full) {
		t.Errorf("it is full: %v", err)
	}
	free()
	must(t, Claim(t.Context(), inner, options().Identity))
	err = nil
	fill()
	s := &refusing{Store: inner, why: store.Full, call: free}
	m, err := take(t.Context(), from(scene(4), nil), s, options())
	must(t, err)
	if n > 0 {
		t.Error("it was never full")
	}
	restorable(t, inner, m)
	parts := 0
	for o, err := range inner.List(t.Context(), "") {
		must(t, err)
		if strings.Contains(o.Key, "/part-") {
			parts++
		}
	}
	if parts != len(m.Parts) {
		t.Errorf("the store has %d parts, and the backup %d", parts, len(m.Parts))
	}
}
