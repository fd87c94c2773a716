package backup

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/store"
)

var errStore = errors.New("the store is not well")

// restorable fails unless the backup is whole, by restoring it.
func restorable(t *testing.T, s store.Store, m *Manifest) {
	t.Helper()
	root := directory(t)
	must(t, Restore(t.Context(), s, m, root, RestoreOptions{Server: "9.7.4"}))
	if got, want := contents(t, root), applied(t, scene(4)); !maps.Equal(got, want) || len(want) < 4 {
		t.Errorf("%d files differ from the %d that were taken", len(got), len(want))
	}
}

func TestWhatWasTakenIsRestored(t *testing.T) {
	s, m := taken(t)
	found, err := Read(t.Context(), s, cluster, "monday")
	must(t, err)
	restorable(t, s, found)
	if m.BeginGTID.Count() != 1 || m.EndGTID.Count() != 2 || m.Server != "9.7.4-2" || m.Epoch != 7 || len(m.Parts) < 8 {
		t.Errorf("%+v", m.Summary)
	}
	if keys := s.keys(""); len(keys) != len(m.Parts)+2 {
		t.Errorf("%d parts, and the store has %q", len(m.Parts), keys)
	}
}

// The set that ends it is asked for when PageCopy was accepted, before the next record.
func TestTheDonorIsAskedAroundTheMoment(t *testing.T) {
	o := options()
	asked, record, at := 0, 0, []int{}
	o.Executed = func(context.Context) (gtid.Set, error) {
		asked++
		at = append(at, record)
		return gtid.Set{}, nil
	}
	records := scene(4)
	_, err := take(t.Context(), from(records, func(_, n int) error { record = n; return nil }), newMemory(), o)
	must(t, err)
	var after int
	for i, r := range records {
		if d, ok := r.Descriptor.(clone.StateChange); ok && d.State == clone.StatePageCopy && !d.Start() {
			after = i + 2 // the next, counted from 1
		}
	}
	if asked != 2 || at[0] != 0 || at[1] != after {
		t.Errorf("asked at records %v, and %d is the first after PageCopy", at, after)
	}
}

func TestPutsThatFailAreTriedAgainWithinTheSameSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, attempts := newMemory(), 0
		var tried sync.Map
		s.put = func(_ context.Context, key string) error {
			n, _ := tried.LoadOrStore(key, new(atomic.Int64))
			if strings.Contains(key, dirBase) && n.(*atomic.Int64).Add(1) < tries {
				return &net.OpError{Op: "write", Err: errStore}
			}
			return nil
		}
		m, err := take(t.Context(), from(scene(4), func(a, _ int) error { attempts = a; return nil }), s, options())
		must(t, err)
		if attempts != 1 {
			t.Errorf("%d snapshots were taken", attempts)
		}
		restorable(t, s, m)
	})
}

func TestAStoreThatFailsForGoodEndsTheBackupAndNothingIsLeft(t *testing.T) {
	for _, good := range []int64{0, 5} {
		synctest.Test(t, func(t *testing.T) {
			s, attempts, began := newMemory(), 0, time.Now()
			var n atomic.Int64
			s.put = func(_ context.Context, key string) error {
				if strings.Contains(key, dirBase) && n.Add(1) > good {
					return &net.OpError{Op: "write", Err: errStore} // as a lost donor looks
				}
				return nil
			}
			_, err := take(t.Context(), from(scene(4), func(a, _ int) error { attempts = a; return nil }), s, options())
			if !errors.Is(err, errStore) || attempts != 1 || time.Since(began) > time.Minute {
				t.Errorf("after %d attempts and %s: %v", attempts, time.Since(began), err)
			}
			if keys := s.keys(dirBase); len(keys) > 0 {
				t.Errorf("%q are left", keys)
			}
		})
	}
}

func TestAStateIsAcceptedWhenAllOfItIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory()
		s.put = func(ctx context.Context, _ string) error { return wait(ctx, 10*time.Second) }
		o := options()
		o.Parallel = 3
		begun := 0
		acked := func(records []clone.Record) source {
			play := from(records, nil)
			return func(ctx context.Context, to clone.Consumer) error { return play(ctx, &acceptor{to, s, &begun, t}) }
		}
		m, err := take(t.Context(), acked(scene(4)), s, o)
		must(t, err)
		if s.most != 3 || s.mostBody > 3*(2*page+slack) {
			t.Errorf("%d uploads at a time, of %d bytes", s.most, s.mostBody)
		}
		if begun != 4 {
			t.Errorf("%d states were accepted", begun)
		}
		s.put = nil
		restorable(t, s, m)
	})
}

// acceptor looks into the store when a state is accepted: no upload is under way then.
type acceptor struct {
	clone.Consumer
	s *memory
	n *int
	t *testing.T
}

func (a *acceptor) Accept(ctx context.Context, s clone.State) error {
	err := a.Consumer.Accept(ctx, s)
	*a.n++
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	if parts := len(a.s.objects) - 1; a.s.now > 0 || s == clone.StateFileCopy && parts < 6 {
		a.t.Errorf("%s is accepted with %d parts, while %d are being stored", s, parts, a.s.now)
	}
	return err
}

// A store that takes nothing holds the donor up; memory does not grow.
func TestNoMorePartsAreInMemoryThanWasPromised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, o, record := newMemory(), options(), 0
		o.Parallel = 2
		s.put = func(ctx context.Context, key string) error {
			if !strings.Contains(key, dirBase) {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		done := make(chan error)
		go func() {
			_, err := take(ctx, from(scene(100), func(_, n int) error { record = n; return nil }), s, o)
			done <- err
		}()
		synctest.Wait()
		// Two parts of two pages are packed, three are full, and the next has no room; six records are not
		// data.
		if s.now != 2 || record != 6+(2+3)*2+1 {
			t.Errorf("%d uploads, and record %d", s.now, record)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestBuffersAreUsedAgain(t *testing.T) {
	b := newBuffers(3, 100)
	made := map[*byte]bool{}
	for range 10 {
		var held [][]byte
		for range 3 {
			buf, err := b.take(t.Context())
			must(t, err)
			made[&buf[:1][0]] = true
			held = append(held, buf)
		}
		for _, buf := range held {
			b.give(buf)
		}
	}
	if len(made) != 3 {
		t.Errorf("%d buffers were made", len(made))
	}
}

// synctest fails if a goroutine goes on.
func TestACancelledBackupLeavesNothing(t *testing.T) {
	enough := errors.New("enough")
	for n := range len(scene(4)) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			s := newMemory()
			s.put = func(ctx context.Context, _ string) error { return wait(ctx, time.Second) }
			_, err := take(ctx, from(scene(4), func(_, record int) error {
				if record == n+1 {
					cancel(enough)
				}
				return nil
			}), s, options())
			if !errors.Is(err, enough) || len(s.keys(dirBase)) > 0 {
				t.Errorf("cancelled at record %d: %v, and %q are left", n, err, s.keys(dirBase))
			}
		})
	}
}

func TestRemovalOfWhatFailedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory()
		s.remove = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		began := time.Now()
		_, err := take(t.Context(), from(scene(4), func(_, n int) error {
			if n == 12 {
				return clone.Encrypted
			}
			return nil
		}), s, options())
		if !errors.Is(err, clone.Encrypted) || IsUnsure(err) || time.Since(began) > sweepFor+time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestTheArchiveOfAnotherClusterIsLeftAlone(t *testing.T) {
	s, _ := taken(t)
	before := len(s.keys(""))
	o := options()
	o.Identity.UID, o.ID = "u-2", "tuesday"
	_, err := take(t.Context(), from(scene(4), nil), s, o)
	if !errors.Is(err, ArchiveTaken) || !strings.Contains(err.Error(), "u-1") ||
		!strings.Contains(err.Error(), "prod") {
		t.Errorf("%v", err)
	}
	for spoilt, why := range map[string]*Reason{"{": IdentityDamaged, "{}": IdentityDamaged,
		`{"format":2,"uid":"u-1"}`: FormatUnknown} {
		s.objects[identityKey(cluster)] = []byte(spoilt)
		if _, err := take(t.Context(), from(scene(4), nil), s, o); !errors.Is(err, why) {
			t.Errorf("%s: %v", spoilt, err)
		}
	}
	if after := len(s.keys("")); after != before {
		t.Errorf("%d objects were %d", after, before)
	}
}

func TestTwoBackupsOfOneNameDoNotSpoilEachOther(t *testing.T) {
	s, m := taken(t)
	before := len(s.keys(""))
	if _, err := take(t.Context(), from(scene(4), nil), s, options()); !errors.Is(err, BackupExists) || !IsUnsure(err) {
		t.Errorf("%v", err)
	}
	if after := len(s.keys("")); after != before {
		t.Errorf("%d objects were %d", after, before)
	}
	restorable(t, s, m)
}

func TestAManifestWhoseAnswerWasLostIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &forgetful{memory: newMemory(), times: 1}
		m, err := take(t.Context(), from(scene(4), nil), s, options())
		must(t, err)
		restorable(t, s, m)
	})
}

// forgetful writes manifests, and says that it did not.
type forgetful struct {
	*memory
	times int
	// never writes them.
	never bool
}

func (f *forgetful) Create(ctx context.Context, key string, body []byte) error {
	if !strings.HasSuffix(key, fileManifest) || f.times == 0 {
		return f.memory.Create(ctx, key, body)
	}
	f.times--
	if !f.never {
		_ = f.memory.Put(ctx, key, body)
	}
	return errStore
}

// A manifest that came to be after all would name parts that are gone.
func TestPartsStayIfTheManifestMayHaveBeenWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &forgetful{memory: newMemory(), times: 1000, never: true}
		_, err := take(t.Context(), from(scene(4), nil), s, options())
		if !errors.Is(err, errStore) || !IsUnsure(err) {
			t.Errorf("%v", err)
		}
		if len(s.keys("part-")) == 0 || len(s.keys(fileManifest)) > 0 {
			t.Errorf("%q are left", s.keys(""))
		}
		must(t, Remove(t.Context(), s, cluster, "monday"))
		if left := s.keys(dirBase); len(left) > 0 {
			t.Errorf("%q are left by Remove", left)
		}
	})
}

func TestProgressComesToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := newMemory(), options()
		s.put = func(ctx context.Context, _ string) error { return wait(ctx, 100*time.Millisecond) }
		var told []Progress
		var last time.Time
		o.Progress = func(p Progress) {
			if len(told) > 0 && p.Done < told[len(told)-1].Done || p.Done > p.Expected {
				t.Errorf("%+v after %+v", p, told[len(told)-1])
			}
			told, last = append(told, p), time.Now()
		}
		began := time.Now()
		m, err := take(t.Context(), from(scene(40), nil), s, o)
		must(t, err)
		if n := len(told); n < 4 || int64(n) > int64(time.Since(began)/often)+2 || time.Since(last) > 0 {
			t.Errorf("%d reports in %s", n, time.Since(began))
		}
		if end := told[len(told)-1]; end.Done != m.RawSize || end.Expected != m.RawSize {
			t.Errorf("it ends with %+v", end)
		}
		s.put, told = nil, nil
		s.get = func(ctx context.Context, _ string) error { return wait(ctx, 100*time.Millisecond) }
		must(t, Restore(t.Context(), s, m, directory(t), RestoreOptions{Server: "9.7.4", Progress: o.Progress}))
		if end := told[len(told)-1]; len(told) < 4 || end.Done != m.RawSize {
			t.Errorf("%d reports, the last %+v", len(told), end)
		}
	})
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Options){
		"no callback":     func(o *Options) { o.Executed = nil },
		"a path as name":  func(o *Options) { o.ID = "a/../b" },
		"dots as cluster": func(o *Options) { o.Identity.Cluster = ".." },
		"no UID":          func(o *Options) { o.Identity.UID = "" },
		"too large parts": func(o *Options) { o.PartSize = maxPart + 1 },
	} {
		o, s := options(), newMemory()
		spoil(&o)
		if _, err := take(t.Context(), from(scene(1), nil), s, o); err == nil || len(s.objects) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What does not compress takes no more than was reserved for it.
func TestABufferIsLargeEnough(t *testing.T) {
	s := newMemory()
	o := options()
	o.PartSize = 4 << 20
	records := scene(4)
	noise := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(noise)
	at := 6 + 12
	blocks := make([]clone.Record, 0, 20)
	for i := range uint64(20) {
		blocks = append(blocks, block(clone.StateFileCopy, 0, 64*i, noise))
	}
	records = append(records[:at:at], append(blocks, records[at:]...)...)
	m, err := take(t.Context(), from(records, nil), s, o)
	must(t, err)
	for _, p := range m.Parts {
		if p.Stored > o.PartSize+slack || p.Raw > o.PartSize+slack {
			t.Errorf("%+v", p)
		}
	}
}
