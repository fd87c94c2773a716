package archive

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

const (
	// aDay is how many parts a targetRPOSeconds of 1 makes in a day.
	aDay = 24 * 60 * 60
	// begun is when the first part of a forged archive was written.
	begun = 1_700_000_000
	// forgedSize is how many bytes each of its parts is said to have, and forgedStored each object.
	forgedSize, forgedStored = 1000, 1
)

// forgedPart is a part of one transaction, one a second.
func forgedPart(n int64) facts.Part {
	at := time.Unix(begun+n, 123456000).UTC()
	return facts.Part{Format: facts.Format, Cluster: "0b8f6dc5-3f6e-4b3e-a9a5-9d6b5f0c7f11", Epoch: 1, Sequence: n,
		ServerUUID: uuidOf(1), File: fmt.Sprintf("binlog.%06d", n/aDay+1), From: n * 500, To: n*500 + 500,
		Transactions: 1, Before: upTo(n - 1), GTIDs: ids(1, strconv.FormatInt(n, 10)), First: at, Last: at,
		Size: forgedSize, SHA256: digest(strconv.AppendInt(nil, n, 10))}
}

// forge puts the facts of an archive of n parts where put does, of which the last ones lie by
// themselves, with indexes. The others are in bundles, and as many of those as can be in summaries.
// There is nothing in any part. With CNMSQL_SUMMARIES=no there is no summary; with CNMSQL_SUMMARIES=only
// there is nothing in the bundles of which one tells, so that a year is forged in no time: drawer makes
// those that are read.
func forge(t testing.TB, n, single int64, put func(key string, body []byte)) {
	t.Helper()
	c, err := newCompressor()
	must(t, err)
	b := facts.Writer{Cluster: forgedPart(1).Cluster, Epoch: 1, Instance: "i", ServerUUID: uuidOf(1)}.Branch(
		facts.Branch{}, ids(1, ""), ids(1, ""), time.Unix(begun, 0))
	text, err := json.Marshal(b)
	must(t, err)
	put(branchKey(prefix, 1), text)
	how, of := os.Getenv("CNMSQL_SUMMARIES"), int64(summaryBundles)*facts.BundleParts
	told := (n - single) / of * of
	for first := int64(1); first <= n-single; first += facts.BundleParts {
		last := min(first+facts.BundleParts-1, n-single)
		var object []byte
		if how != "only" || last > told {
			object, err = c.bundleOf(forged(first, last, digest(nil), 0), nil)
			must(t, err)
		}
		put(bundleKey(prefix, facts.Bundle{Epoch: 1, First: first, Last: last}), object)
	}
	if how != "no" {
		forgeSummaries(t, c, n-single, put)
	}
	for first := n - single + 1; first <= n; first += indexed {
		last := min(first+indexed-1, n)
		object, err := c.text(index{Format: facts.Format, Epoch: 1, Parts: forged(first, last, "", 1)})
		must(t, err)
		put(indexKey(prefix, facts.Key{Epoch: 1, Sequence: last}), object)
	}
}

// forgeSummaries puts those of n parts.
func forgeSummaries(t testing.TB, c *compressor, n int64, put func(key string, body []byte)) {
	of := int64(summaryBundles) * facts.BundleParts
	for first := int64(1); first+of-1 <= n; first += of {
		s := summary{Format: summaryFormat, Epoch: 1}
		for b := first; b < first+of; b += facts.BundleParts {
			last := b + facts.BundleParts - 1
			run := forgedRun(b, last)
			s.Bundles = append(s.Bundles, summarized{b, last, forgedStored, []writtenRun{{run, last}}})
		}
		object, err := c.text(s)
		must(t, err)
		put(summaryKey(prefix, facts.Span{Epoch: 1, First: first, Last: first + of - 1}), object)
	}
}

// forgedRun is what RunsOf makes of the parts, and takes no time.
func forgedRun(first, last int64) facts.Part {
	run, end := forgedPart(first), forgedPart(last)
	run.GTIDs, run.Last, run.SHA256 = ids(1, fmt.Sprintf("%d-%d", first, last)), end.Last, ""
	run.Transactions, run.Size = last-first+1, (last-first+1)*forgedSize
	return run
}

// TestForgedRunsAreThoseOfTheirParts: what is measured with them is true.
func TestForgedRunsAreThoseOfTheirParts(t *testing.T) {
	parts := (&index{Parts: forged(1025, 2048, "", 1)}).parts()
	run := forgedRun(1025, 2048)
	run.Through = 2048
	if all := facts.RunsOf(parts); len(all) != 1 || !reflect.DeepEqual(all[0], run) {
		t.Errorf("%+v, not %+v", all, run)
	}
}

func forged(first, last int64, object string, stored int64) (all []entry) {
	for n := first; n <= last; n++ {
		all = append(all, entry{Part: forgedPart(n), Object: object, Stored: stored})
	}
	return all
}

// drawer is a store that forgets what is written: files below a directory, which are bundles that are
// made when they are read if they are empty, and besides the parts that are said to lie by themselves,
// made when they are read.
type drawer struct {
	store.Store
	dir         string
	first, last int64
}

func (d drawer) Get(_ context.Context, key string) (io.ReadCloser, error) {
	if k, ok := readKey(prefix, key); ok && k.Sequence >= d.first && k.Sequence <= d.last {
		c, _ := compressors.Get().(*compressor)
		defer compressors.Put(c)
		p := forgedPart(k.Sequence)
		object, err := c.object(&p, make([]byte, forgedSize), seal.Key{})
		return io.NopCloser(bytes.NewReader(object)), err
	}
	f, err := os.Open(filepath.Join(d.dir, key))
	if errors.Is(err, os.ErrNotExist) {
		return nil, store.NotFound
	}
	if err != nil {
		return nil, err
	}
	if is, err := f.Stat(); err != nil || is.Size() > 0 {
		return f, err
	}
	b, _ := readBundleKey(prefix, key)
	c, _ := compressors.Get().(*compressor)
	defer compressors.Put(c)
	object, err := c.bundleOf(forged(b.First, b.Last, digest(nil), 0), nil)
	return io.NopCloser(bytes.NewReader(object)), errors.Join(err, f.Close())
}

func (d drawer) Create(context.Context, string, []byte) error { return nil }

func (d drawer) Delete(context.Context, string) error { return nil }

// compressors that nobody uses now.
var compressors = sync.Pool{New: func() any {
	c, _ := newCompressor()
	return c
}}

func (d drawer) List(_ context.Context, below string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		files, err := filepath.Glob(filepath.Join(d.dir, prefix, "*", "*"))
		next := d.first
		// upTo lists the parts that come before a key.
		upTo := func(key string) bool {
			for ; next <= d.last; next++ {
				part := partKey(prefix, facts.Key{Epoch: 1, Sequence: next})
				if part > key {
					break
				}
				if strings.HasPrefix(part, below) && !yield(listedAt(part), nil) {
					return false
				}
			}
			return true
		}
		for _, path := range files {
			key := strings.TrimPrefix(path, d.dir+"/")
			if !upTo(key) || strings.HasPrefix(key, below) && !yield(listedAt(key), err) {
				return
			}
		}
		upTo("d")
	}
}

func listedAt(key string) store.Object {
	return store.Object{Key: key, Size: forgedStored, Modified: time.Unix(begun, 0)}
}

// TestWhatManyDaysNeed measures what memory it takes to decide about an archive with a part a
// second, of which all but the last day (CNMSQL_UNMERGED=2: two days) are in bundles:
// CNMSQL_DAYS=1,7,30. CNMSQL_WHAT=expire measures one thing only, and with CNMSQL_FAR=10ms each
// question to the store takes that long. Each time it is a process of its own, with GOMEMLIMIT as it is
// here.
func TestWhatManyDaysNeed(t *testing.T) {
	days := os.Getenv("CNMSQL_DAYS")
	if days == "" {
		t.Skip("set CNMSQL_DAYS to how many days to measure with, as 1,7,30")
	}
	for text := range strings.SplitSeq(days, ",") {
		n, err := strconv.ParseInt(text, 10, 64)
		must(t, err)
		dir := t.TempDir()
		forge(t, n*aDay, unmerged(t), func(key string, body []byte) {
			path := filepath.Join(dir, key)
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, os.WriteFile(path, body, 0o644))
		})
		for _, what := range slices.Sorted(maps.Keys(measured)) {
			if only := os.Getenv("CNMSQL_WHAT"); only != "" && only != what {
				continue
			}
			cmd := exec.Command(os.Args[0], "-test.run=^TestADayIsMeasured$", "-test.v")
			cmd.Env = append(os.Environ(), "CNMSQL_FORGED="+dir, "CNMSQL_PARTS="+strconv.FormatInt(n*aDay, 10),
				"CNMSQL_WHAT="+what)
			begun := time.Now()
			out, err := cmd.CombinedOutput()
			used, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			t.Logf("%d days, %s: %d MiB at most, %s, of one core %s, %v\n%s", n, what, used.Maxrss>>10,
				time.Since(begun).Round(time.Millisecond),
				time.Duration(used.Utime.Nano()).Round(time.Millisecond), err, out)
		}
	}
}

// unmerged is how many parts lie by themselves.
func unmerged(t *testing.T) int64 {
	n, err := strconv.ParseInt(cmp.Or(os.Getenv("CNMSQL_UNMERGED"), "1"), 10, 64)
	must(t, err)
	return n * aDay
}

// measured is what is asked of an archive.
var measured = map[string]func(t *testing.T, s store.Store, n int64) string{
	"expire": func(t *testing.T, s store.Store, n int64) string {
		h := holdings(n)
		var err error
		h.Archive, err = Load(t.Context(), s, prefix)
		must(t, err)
		e, err := NewPlace(s, prefix, seal.Key{}).Expire(t.Context(), &h)
		must(t, err)
		gone := int64(0)
		for _, span := range e.Parts {
			gone += span.Count()
		}
		return fmt.Sprintf("%d parts go, held: %q", gone, e.Held)
	},
	"merge": func(t *testing.T, s store.Store, n int64) string {
		done, err := Merge(t.Context(), s, prefix, time.Unix(begun, 0).Add(2*time.Hour))
		must(t, err)
		return fmt.Sprintf("%d parts are merged into %d bundles", done.Parts, done.Bundles)
	},
	"select": func(t *testing.T, s store.Store, n int64) string {
		a, err := Load(t.Context(), s, prefix)
		must(t, err)
		plan, err := NewPlace(s, prefix, seal.Key{}).Choose(t.Context(), &a, facts.Base{Epoch: 1, End: upTo(100)},
			facts.Target{})
		must(t, err)
		return fmt.Sprintf("%d transactions are replayed", Whole(plan).Of)
	},
}

// holdings are a backup a day, or four of less than four days, the newest a second behind the last
// part, and half of the time is in the window.
func holdings(n int64) facts.Holdings {
	now := time.Unix(begun+n+1, 0).UTC()
	h := facts.Holdings{Window: time.Duration(n/2) * time.Second, Local: now, Store: now}
	every := min(aDay, n/4)
	for at := n % every; at <= n; at += every {
		when := time.Unix(begun+at, 0).UTC()
		h.Bases = append(h.Bases, facts.Stored{ID: strconv.FormatInt(at, 10), Epoch: 1, Begin: upTo(at), End: upTo(at),
			Point: when, Ended: when, Written: when})
	}
	return h
}

// TestMemoryGrowsWithRuns: an archive needs some kilobytes for a thousand parts, whether they lie in
// bundles or not, also once it was decided about it; with all of its parts it was 60 MB.
func TestMemoryGrowsWithRuns(t *testing.T) {
	for name, single := range map[string]int64{"in bundles": 64, "not merged": aDay / 2} {
		t.Run(name, func(t *testing.T) { growsWithRuns(t, aDay/2, single) })
	}
}

func growsWithRuns(t *testing.T, parts, single int64) {
	m := newMemory()
	forge(t, parts, single, func(key string, body []byte) { m.objects[key] = body })
	for n := parts - single + 1; n <= parts; n++ {
		m.objects[partKey(prefix, facts.Key{Epoch: 1, Sequence: n})] = []byte{0}
	}
	before := heap()
	h := holdings(parts)
	var err error
	h.Archive, err = Load(t.Context(), m, prefix)
	must(t, err)
	if n := int64(len(h.Archive.Parts)); n > parts/facts.BundleParts+12 {
		t.Errorf("%d parts are known of %d", n, parts)
	}
	plan, err := place(m).Choose(t.Context(), &h.Archive, facts.Base{Epoch: 1, End: upTo(100)}, facts.Target{})
	must(t, err)
	e, err := place(m).Expire(t.Context(), &h)
	must(t, err)
	if of := Whole(plan).Of; of != parts-100 || len(e.Parts) != 1 || e.Parts[0].Count() < parts/3 {
		t.Errorf("%d transactions are replayed, and %v goes", of, e.Parts)
	}
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("%d bytes are needed for %d parts", grown, parts)
	}
	runtime.KeepAlive(h)
	runtime.KeepAlive(plan)
	runtime.KeepAlive(m)
}

// heap is how many bytes are in use.
func heap() int64 {
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	return int64(mem.HeapAlloc)
}

// TestADayIsMeasured is the process of TestWhatManyDaysNeed.
func TestADayIsMeasured(t *testing.T) {
	dir := os.Getenv("CNMSQL_FORGED")
	if dir == "" {
		t.Skip("TestWhatManyDaysNeed runs it")
	}
	n, err := strconv.ParseInt(os.Getenv("CNMSQL_PARTS"), 10, 64)
	must(t, err)
	what := os.Getenv("CNMSQL_WHAT")
	took, _ := time.ParseDuration(os.Getenv("CNMSQL_FAR"))
	s := &far{Store: drawer{dir: dir, first: n - unmerged(t) + 1, last: n}, took: took}
	said := measured[what](t, s, n)
	t.Logf("%s, with %d questions", said, s.asked.Load())
}
