package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/seal"
	"cnmsql.co/test/zoo"
)

// TestKilledAndTakenAgain backs up tables of every kind while they are written to and changed.
// In turn, who takes the backup is killed, or the donor, or their connection is cut, and so is
// who restores it, each at a moment that is drawn. What is restored in the end has to follow the
// donor, and to be equal to it. CNMSQL_BACKUP_RUNS says how often.
func TestKilledAndTakenAgain(t *testing.T) {
	runs := 3
	if text := os.Getenv("CNMSQL_BACKUP_RUNS"); text != "" {
		var err error
		runs, err = strconv.Atoi(text)
		must(t, err)
	}
	donor := newServer(t)
	donor.Initialize()
	donor.start(1)
	donor.mayBeCopied()
	zoo.Fill(donor.Test, 1)
	meddler := &zoo.Meddler{Server: donor.Test}
	for run := range runs {
		t.Run(strconv.Itoa(run), func(t *testing.T) {
			r := &ordeal{t: t, donor: donor, meddler: meddler, store: newMemory(),
				random: rand.New(rand.NewPCG(uint64(run), 1)), id: fmt.Sprintf("run-%d", run),
				uncompressed: run%2 == 1}
			m := []func() *Manifest{r.takerIsKilled, r.donorIsKilled, r.connectionIsCut}[run%3]()
			r.restoredAndEqual(m)
		})
	}
}

// ordeal is one run, from the backup to the server that is equal.
type ordeal struct {
	t       *testing.T
	donor   *server
	meddler *zoo.Meddler
	store   *memory
	random  *rand.Rand
	id      string
	// uncompressed: every other run is, of each kind of fault.
	uncompressed bool
}

// options are those of a donor that may end meanwhile.
func (r *ordeal) options() Options {
	o := r.donor.options(r.id)
	o.PartSize, o.Uncompressed = 1<<20, r.uncompressed
	db, err := sql.Open("mysql", "root@unix("+r.donor.Socket()+")/")
	must(r.t, err)
	r.t.Cleanup(func() { _ = db.Close() })
	o.Executed = executedOf(db)
	return o
}

// atPut calls do once, when a part is about to be stored; the number of it is drawn.
func (r *ordeal) atPut(do func()) {
	var n atomic.Int64
	at := int64(1 + r.random.IntN(15))
	r.t.Logf("at part %d", at)
	once := sync.OnceFunc(do)
	r.store.put = func(_ context.Context, key string) error {
		if strings.Contains(key, "part-") && n.Add(1) == at {
			once()
		}
		return nil
	}
}

// take takes the backup; DDL goes on beside it.
func (r *ordeal) take(ctx context.Context, d clone.Donor) (*Manifest, error) {
	o := r.options()
	first := true
	o.Progress = func(p Progress) {
		if first && p.Done > 0 {
			first = false
			go r.meddler.Round()
		}
	}
	return Take(ctx, d, r.store, o)
}

// takerIsKilled: nothing is removed by one that is killed, and the next one begins anew. The
// donor serves it once it has noticed that the first is gone.
func (r *ordeal) takerIsKilled() *Manifest {
	stop := zoo.Load(r.donor.Test)
	ctx, kill := context.WithCancel(r.t.Context())
	dead := func(context.Context, string) error { return context.Canceled }
	r.atPut(func() {
		r.store.remove = dead
		kill()
	})
	if _, err := r.take(ctx, r.donor.donor()); !errors.Is(err, context.Canceled) {
		r.t.Fatalf("a backup that was killed says %v", err)
	}
	r.store.put, r.store.remove = nil, nil
	left := len(r.store.keys("part-"))
	time.Sleep(donorNotices)
	m, err := r.take(r.t.Context(), r.donor.donor())
	r.t.Logf("%d statements; the first had left %d parts", stop(), left)
	must(r.t, err)
	must(r.t, r.meddler.Wait())
	return m
}

// donorIsKilled, and comes back.
func (r *ordeal) donorIsKilled() *Manifest {
	stop := zoo.Load(r.donor.Test)
	back := make(chan struct{})
	r.atPut(func() {
		go func() {
			defer close(back)
			r.donor.Kill()
			r.t.Logf("%d statements", stop())
			_ = r.meddler.Wait() // its statement was cut off
			r.donor.start(1)
			stop = zoo.Load(r.donor.Test)
		}()
	})
	m, err := Take(r.t.Context(), r.donor.donor(), r.store, r.options())
	<-back
	stop()
	must(r.t, err)
	if parts := len(r.store.keys("part-")); parts != len(m.Parts) {
		r.t.Errorf("%d parts are stored, and the backup has %d", parts, len(m.Parts))
	}
	return m
}

func (r *ordeal) connectionIsCut() *Manifest {
	stop := zoo.Load(r.donor.Test)
	after := int64(r.random.IntN(15 << 20))
	r.t.Logf("after %d bytes", after)
	m, err := r.take(r.t.Context(), cutAfter(r.t, r.donor.donor(), after))
	stop()
	must(r.t, err)
	must(r.t, r.meddler.Wait())
	return m
}

// restoredAndEqual: what was restored when the first try was killed, on which mysqld is killed
// once, follows the donor and is equal to it.
func (r *ordeal) restoredAndEqual(m *Manifest) {
	restored := newServer(r.t)
	ctx, kill := context.WithCancel(r.t.Context())
	var n atomic.Int64
	at := int64(1 + r.random.IntN(len(m.Parts)))
	r.store.get = func(context.Context, string) error {
		if n.Add(1) == at {
			kill()
		}
		return nil
	}
	root, err := os.OpenRoot(restored.Data())
	must(r.t, err)
	err = Restore(ctx, r.store, m, root, RestoreOptions{Server: m.Server})
	must(r.t, root.Close())
	if err == nil {
		r.t.Error("a restore that was killed says that all is there")
	}
	r.store.get = nil
	must(r.t, os.RemoveAll(restored.Data()))
	must(r.t, os.Mkdir(restored.Data(), 0o755))
	intoDirectory(r.t, r.store, r.id, restored, seal.Key{})
	restored.start(2)
	if r.random.IntN(2) == 0 {
		restored.Kill()
		restored.start(2)
	}
	follow(r.t, restored, r.donor)
	want, got := zoo.Checksums(r.donor.Test), zoo.Checksums(restored.Test)
	if !maps.Equal(got, want) {
		r.t.Errorf("contents differ: restored %v, donor %v", got, want)
	}
	restored.Stop()
	r.t.Logf("%d tables are equal, and the pages of %d files are sound", len(want), zoo.Innochecksum(restored.Test))
}
