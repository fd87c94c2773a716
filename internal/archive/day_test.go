package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// far is a store that is some way off: each question takes a while.
type far struct {
	store.Store
	asked atomic.Int64
	took  time.Duration
}

func (f *far) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	f.asked.Add(1)
	time.Sleep(f.took)
	return f.Store.Get(ctx, key)
}

func (f *far) Delete(ctx context.Context, key string) error {
	f.asked.Add(1)
	time.Sleep(f.took)
	return f.Store.Delete(ctx, key)
}

// List asks again for each thousand objects.
func (f *far) List(ctx context.Context, below string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		n := 0
		for o, err := range f.Store.List(ctx, below) {
			if n%1000 == 0 {
				f.asked.Add(1)
				time.Sleep(f.took)
			}
			if n++; !yield(o, err) {
				return
			}
		}
	}
}

// TestWhatManyPartsCost measures, with an S3 server, how long it takes to read so many parts, before
// and after they are merged: CNMSQL_PARTS=86400 is a day of them with one each second. CNMSQL_FAR,
// as 10ms, is what the way there and back takes.
func TestWhatManyPartsCost(t *testing.T) {
	n, _ := strconv.ParseInt(os.Getenv("CNMSQL_PARTS"), 10, 64)
	if n == 0 {
		t.Skip("set CNMSQL_PARTS to how many parts to measure with")
	}
	s, err := store.Open(storetest.S3(t))
	must(t, err)
	took, _ := time.ParseDuration(os.Getenv("CNMSQL_FAR"))
	f := &far{Store: s, took: took}
	begun := time.Now()
	writeParts(t, s, n)
	t.Logf("%d parts are written after %s", n, time.Since(begun).Round(time.Millisecond))
	readMany(t, f)
	for range 2 {
		f.asked.Store(0)
		begun = time.Now()
		m, err := Merge(t.Context(), f, prefix, begun.Add(2*time.Hour))
		must(t, err)
		t.Logf("merged %d parts into %d bundles and removed %d objects in %s with %d questions", m.Parts, m.Bundles,
			m.Removed, time.Since(begun).Round(time.Millisecond), f.asked.Load())
	}
	readMany(t, f)
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	t.Logf("the process has %d MiB of the system", mem.Sys>>20)
}

// writeParts writes parts of one small transaction each, with the indexes of their blocks.
func writeParts(t *testing.T, s store.Store, n int64) {
	t.Helper()
	raw, err := os.ReadFile("../binlog/testdata/writes.bin")
	must(t, err)
	b := facts.Writer{Cluster: "c", Epoch: 1, Instance: "i", ServerUUID: uuidOf(1)}.Branch(facts.Branch{}, ids(1, ""),
		ids(1, ""), time.Now())
	text, err := json.Marshal(b)
	must(t, err)
	must(t, s.Create(t.Context(), branchKey(prefix, 1), text))
	all, known := make([]int64, n), make([]entry, n)
	for i := range all {
		all[i] = int64(i) + 1
	}
	must(t, eachOf(t.Context(), all, readers, func(ctx context.Context, i int64) error {
		c, err := newCompressor()
		if err != nil {
			return err
		}
		p := facts.Part{Cluster: "c", Epoch: 1, Sequence: i, ServerUUID: uuidOf(1), File: "binlog.000001",
			Transactions: 1, Before: upTo(i - 1), GTIDs: upTo(i).Subtract(upTo(i - 1)), First: time.Now(),
			Last: time.Now()}
		object, err := c.object(&p, raw, seal.Key{})
		known[i-1] = entry{Part: p, Stored: int64(len(object))}
		return errors.Join(err, s.Create(ctx, partKey(prefix, p.Key()), object))
	}))
	c, err := newCompressor()
	must(t, err)
	for block := range slices.Chunk(known, indexed) {
		if last := block[len(block)-1].Part; len(block) == indexed {
			object, err := c.text(index{Format: facts.Format, Epoch: 1, Parts: block})
			must(t, errors.Join(err, s.Create(t.Context(), indexKey(prefix, last.Key()), object)))
		}
	}
}

func upTo(n int64) gtid.Set {
	if n == 0 {
		return gtid.Set{}
	}
	return ids(1, fmt.Sprintf("1-%d", n))
}

func readMany(t *testing.T, f *far) {
	t.Helper()
	f.asked.Store(0)
	begun := time.Now()
	a, err := Load(t.Context(), f, prefix)
	must(t, err)
	t.Logf("%d parts are known after %s and %d questions", len(a.Parts), time.Since(begun).Round(time.Millisecond),
		f.asked.Load())
	f.asked.Store(0)
	begun = time.Now()
	at := NewPlace(f, prefix, seal.Key{})
	var steps []facts.Step
	for _, p := range a.Parts {
		steps = append(steps, facts.Step{Pieces: []facts.Part{p}, Take: p.GTIDs})
	}
	r := newAhead(t.Context(), func(ctx context.Context) iter.Seq2[facts.Step, error] { return at.steps(ctx, steps) },
		sizeOf, func(ctx context.Context, _ int, step facts.Step) (int64, error) {
			body, err := at.open(ctx, step.Pieces[0])
			if err != nil {
				return 0, err
			}
			size, err := io.Copy(io.Discard, body)
			return size, errors.Join(err, body.Close())
		})
	defer r.end()
	for more := true; more; {
		_, _, more, err = r.next()
		must(t, err)
	}
	t.Logf("and read after %s and %d questions", time.Since(begun).Round(time.Millisecond), f.asked.Load())
}
